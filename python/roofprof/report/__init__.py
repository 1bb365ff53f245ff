"""Reports: read, written, grouped, compared, merged over ranks."""
