"""What a page has: its elements with their attributes, and its texts."""

from html.parser import HTMLParser


class Texts(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)
