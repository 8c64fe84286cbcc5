"""Why a request goes where it goes, or nowhere, and what would have to be different."""
