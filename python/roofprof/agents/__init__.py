"""Short answers about the reports of a folder, for agents, and a server of the Model Context Protocol for them."""
