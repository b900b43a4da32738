"""The npm packages as others get them: installed from their tarballs."""
