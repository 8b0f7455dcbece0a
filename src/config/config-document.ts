import type { LocatedYaml, Position } from '#config/locate.ts'
import type { Path } from '#kernel/issues.ts'

/** What an issue is filed under: it turns the path into a place that a person can open. */
export abstract class Place {
  /** Relative to the configuration folder, or `Kind/namespace/name` of an object of a cluster. */
  readonly file: string
  /** False where lines would tell a person nothing. */
  readonly hasLines: boolean

  constructor(file: string, hasLines = true) {
    this.file = file
    this.hasLines = hasLines
  }

  abstract position(path: Path): Position

  at(path: Path): string {
    if (!this.hasLines) return this.file
    const { line, column } = this.position(path)
    return `${this.file}:${line}:${column}`
  }
}

/** A place without a document: a file that cannot be read, or a spot where it is not YAML. */
export class FixedPlace extends Place {
  readonly #position: Position

  constructor(file: string, position: Position = { line: 1, column: 1 }, hasLines = true) {
    super(file, hasLines)
    this.#position = position
  }

  position(): Position {
    return this.#position
  }
}

/** One YAML document of the configuration. */
export class ConfigDocument extends Place {
  readonly yaml: LocatedYaml

  constructor(file: string, yaml: LocatedYaml, hasLines = true) {
    super(file, hasLines)
    this.yaml = yaml
  }

  position(path: Path): Position {
    return this.yaml.position(path)
  }
}
