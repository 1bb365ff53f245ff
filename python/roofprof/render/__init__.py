"""The forms of results: text, pictures, pages, traces; files and progress."""
