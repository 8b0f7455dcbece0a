import type { Path } from '#kernel/issues.ts'
import type { LocatedYaml, Position } from './locate.ts'

/** The document of an issue: it turns the path into a place that a person can open. */
export abstract class Place {
  /** Relative to the configuration folder, or `Kind/namespace/name` of an object of a cluster. */
  readonly file: string
  /** False if lines would be meaningless to a person. */
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

/** A place without a document: an unreadable file, or a syntax error. */
export class FixedPlace extends Place {
  /** What can't be used because of a problem here: a document, a file, or the whole configuration. */
  readonly concerns: Place | 'everything'
  readonly #position: Position

  constructor(
    file: string,
    position: Position = { line: 1, column: 1 },
    hasLines = true,
    concerns?: Place | 'everything',
  ) {
    super(file, hasLines)
    this.concerns = concerns ?? this
    this.#position = position
  }

  position(): Position {
    return this.#position
  }
}

/** A part of a document that can be set aside without the rest. */
export class PartPlace extends Place {
  readonly document: ConfigDocument
  readonly path: Path

  constructor(document: ConfigDocument, path: Path) {
    super(document.file, document.hasLines)
    this.document = document
    this.path = path
  }

  position(path: Path): Position {
    return this.document.position([...this.path, ...path])
  }

  contains(document: unknown, path: Path): boolean {
    return document === this.document && this.path.every((step, i) => path[i] === step)
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
