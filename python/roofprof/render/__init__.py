"""What results are shown as: text, pictures, pages, traces; files and progress."""
