/* SPDX-License-Identifier: Apache-2.0 */
/* The socket by which a service tells its manager how it is: sd_notify(3). A message is a datagram of lines NAME=VALUE. */
#ifndef FORMATS_BASE_NOTIFY_SOCKET_H
#define FORMATS_BASE_NOTIFY_SOCKET_H

/*
 * Connects to the socket that NOTIFY_SOCKET names: a path, or behind '@' a name that is in no file system. Returns a
 * descriptor above standard error's, closed by exec; -1: errno says why not, EAFNOSUPPORT for other kinds of names.
 */
int notify_socket_open(const char *name);

#endif
