/** The limit of the API for one request. */
export const maxPeople = 500

/** The logins of a pasted list, with a comma, a semicolon or a line break between them; undefined for a single one. */
export function pastedLogins(text: string): readonly string[] | undefined {
  const logins = text
    .split(/[\n\r,;\t]+/)
    .map((login) => login.trim())
    .filter((login) => login !== '')
  return logins.length < 2 ? undefined : [...new Set(logins)]
}
