# SPDX-License-Identifier: Apache-2.0
"""A site of Django with one page. usage: django_site.py runserver PORT"""
import sys

from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpResponse
from django.urls import path

from work import answer

urlpatterns = [path("", lambda request: HttpResponse(answer()))]

if __name__ == "__main__":
    settings.configure(DEBUG=True, ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="none")
    execute_from_command_line(sys.argv)
