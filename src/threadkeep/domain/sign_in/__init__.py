"""How people sign in with a browser: sessions, and the invitations that begin some of them."""
