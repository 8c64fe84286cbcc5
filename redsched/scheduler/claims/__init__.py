"""Operations on claims, one or many: read, renew, resize, move, shelve, release."""
