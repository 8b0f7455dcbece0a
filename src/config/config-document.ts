import type { LocatedYaml, Position } from '#config/locate.ts'
import type { Path } from '#kernel/issues.ts'

/** What an issue is filed under: it turns the path into a place that a person can open. */
export abstract class Place {
  /** Relative to the configuration folder. */
  readonly file: string

  constructor(file: string) {
    this.file = file
  }

  abstract position(path: Path): Position

  at(path: Path): string {
    const { line, column } = this.position(path)
    return `${this.file}:${line}:${column}`
  }
}

/** A place without a document: a file that cannot be read, or a spot where it is not YAML. */
export class FixedPlace extends Place {
  readonly #position: Position

  constructor(file: string, position: Position = { line: 1, column: 1 }) {
    super(file)
    this.#position = position
  }

  position(): Position {
    return this.#position
  }
}

/** One YAML document of the configuration folder. */
export class ConfigDocument extends Place {
  readonly yaml: LocatedYaml

  constructor(file: string, yaml: LocatedYaml) {
    super(file)
    this.yaml = yaml
  }

  position(path: Path): Position {
    return this.yaml.position(path)
  }
}
