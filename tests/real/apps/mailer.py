# SPDX-License-Identifier: Apache-2.0
"""A worker as supervisord starts them, which gives itself a title. usage: mailer.py TITLE"""
import sys

import setproctitle

import workers

setproctitle.setproctitle(sys.argv[1])
workers.toil()
