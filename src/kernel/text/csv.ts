/** Makes spreadsheets read the file as UTF-8. */
export const byteOrderMark = '\ufeff'

/** One line of RFC 4180. */
export const csvLine = (values: readonly (string | null | undefined)[]): string =>
  `${values.map((value) => csvCell(value ?? '')).join(',')}\r\n`

/**
 * A spreadsheet evaluates a cell that starts like a formula, even one that a user wrote into their own name; an
 * apostrophe makes it a text. Plain numbers stay unchanged.
 */
export function csvCell(value: string): string {
  const formula = /^[\s\p{C}]*[=+\-@＝＋－＠]|^[\t\r\n]/u.test(value) && !/^[+-]?\d+(?:\.\d+)?$/.test(value)
  const text = formula ? `'${value}` : value
  return /[",\r\n;\t]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
