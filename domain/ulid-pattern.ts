/** A ULID, for regular expressions of JavaScript and of Postgres: the first digit has three bits. */
export const ULID_PATTERN = '[0-7][0-9A-HJKMNP-TV-Z]{25}';
