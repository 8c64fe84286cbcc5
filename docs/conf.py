"""Build the documents as a site: `sphinx-build -W docs build/site`. Why Sphinx: docs/decisions/0041-site.md."""

project = "redsched"
author = project_copyright = "The redsched authors"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "redsched"
highlight_language = "none"
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # examples of JSON leave parts out with "..."
