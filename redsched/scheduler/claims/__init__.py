"""Operations on one or many claims: read, confirm, renew, resize, move, shelve, release."""
