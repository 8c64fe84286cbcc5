"""The lifecycle of a claim on its host: start, resize, stop, and work that ends by itself."""
