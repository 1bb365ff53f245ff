"""The tree of a model's modules, the hooks around their calls, and the device that they run on."""
