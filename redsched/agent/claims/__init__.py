"""The lifecycle of a claim on its host: starting, resizing and stopping its work, and work that ends by itself."""
