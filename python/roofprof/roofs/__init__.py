"""The roofs of devices and of networks: measured, published, kept in files."""
