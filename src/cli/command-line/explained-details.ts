const labelWidth = 13

/** The lines of an explanation for programs: a label such as `rule`, and what is said of it. Lines without one continue. */
export function explainedDetails(lines: readonly string[]): { readonly about: string; readonly text: string }[] {
  let about = ''
  return lines.map((line) => {
    about = line.slice(0, labelWidth).trim() || about
    return { about, text: line.slice(labelWidth).trim() }
  })
}
