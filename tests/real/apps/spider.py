# SPDX-License-Identifier: Apache-2.0
"""A spider of scrapy's that reads a page on this disk, again and again."""
import pathlib
import tempfile

import scrapy
from scrapy.crawler import CrawlerProcess

from clocks import phase
from work import count


@phase
def extract(response):
    return [link.attrib["href"] for link in response.css("li a")]


class Spider(scrapy.Spider):
    name = "spider"
    custom_settings = {"LOG_ENABLED": False, "DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter", "TELNETCONSOLE_ENABLED": False}

    async def start(self):
        for _ in range(150):
            yield scrapy.Request(self.page)

    def parse(self, response):
        extract(response)
        count(30000)


with tempfile.TemporaryDirectory() as folder:
    page = pathlib.Path(folder, "page.html")
    page.write_text("<ul>" + "".join(f"<li><a href='/{n}'>{n}</a>" for n in range(300)) + "</ul>")
    Spider.page = page.as_uri()
    process = CrawlerProcess()
    process.crawl(Spider)
    process.start()
