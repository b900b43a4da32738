"""Use cases of people who sign in with a browser, and of the admins who let them in."""
