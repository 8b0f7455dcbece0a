/** A configuration with errors; `problems` are the lines that `gatehouse check` prints. */
export class ConfigurationRefused extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(`the configuration has ${problems.length} problem${problems.length === 1 ? '' : 's'}`)
    this.name = 'ConfigurationRefused'
    this.problems = problems
  }
}
