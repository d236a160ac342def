# SPDX-License-Identifier: Apache-2.0
"""A stand-in for Pyroscope's POST /ingest, from its documented interface
(grafana.com/docs/pyroscope, reference-server-api): name, from and until in the
query, a form with the field "profile"; what the store refuses is refused."""
import email.parser
import email.policy
import http.server
import re
import threading
import urllib.parse


class Ingest:
    def __init__(self, port=0):
        # Query and profile of each that came; statuses to answer with first.
        self.taken = []
        self.asked = 0
        self.statuses = []
        # Authorization of each that came; where to go of a status 3xx.
        self.authorizations = []
        self.location = None
        # What each answer says.
        self.text = b""
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # pylint: disable=invalid-name
                outer.asked += 1
                outer.authorizations.append(self.headers["Authorization"])
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = outer.statuses.pop(0) if outer.statuses else \
                    outer.take(self.path, self.headers, body)
                self.send_response(status)
                if outer.location:
                    self.send_header("Location", outer.location)
                self.send_header("Content-Length", str(len(outer.text)))
                self.end_headers()
                try:
                    self.wfile.write(outer.text)
                except ConnectionError:
                    # It has read enough.
                    self.close_connection = True

            def log_message(self, *args):  # pylint: disable=arguments-differ
                pass
        http.server.ThreadingHTTPServer.allow_reuse_address = True
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port),
                                                      Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever,
                                       args=(0.05,), daemon=True)
        self.thread.start()

    def take(self, path, headers, body):
        """The status; what is right is kept."""
        url = urllib.parse.urlparse(path)
        query = {k: v[0] for k, v in
                 urllib.parse.parse_qs(url.query).items()}
        if url.path != "/ingest" or not {"name", "from", "until"} <= set(query):
            return 400
        if not re.fullmatch(r"[\w.-]+\{(\w+=[\w.-]+,?)+\}", query["name"]):
            return 422
        form = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(
            b"Content-Type: " + headers["Content-Type"].encode() +
            b"\r\n\r\n" + body)
        parts = {part.get_param("name", header="content-disposition"):
                 part.get_payload(decode=True) for part in form.iter_parts()}
        if set(parts) != {"profile"}:
            return 422
        self.taken.append((query, parts["profile"]))
        return 200

    def end(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
