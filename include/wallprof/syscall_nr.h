/* SPDX-License-Identifier: Apache-2.0 */
/* syscall_nr.h - numbers of system calls, on every machine.
 *
 * Layer: base.
 */
#ifndef WP_SYSCALL_NR_H
#define WP_SYSCALL_NR_H

#include <sys/syscall.h>

/* aarch64 lacks these: numbers that no call has. */
#ifndef SYS_poll
#define SYS_poll (-2)
#define SYS_select (-3)
#define SYS_epoll_wait (-4)
#define SYS_vfork (-5)
#endif
/* Later than the C library's headers may be: Linux 5.6, 5.11, 5.16 and 6.7, one number
 * everywhere. */
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#endif

#endif
