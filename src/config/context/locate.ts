import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseAllDocuments,
  parseDocument,
  type Scalar,
  visit,
  type YAMLMap,
} from 'yaml'
import type { Path } from '#kernel/issues.ts'
import { isForbiddenKey } from '#kernel/json.ts'

export interface Position {
  readonly line: number
  readonly column: number
}

export interface YamlProblem {
  readonly position: Position
  readonly message: string
  /** A problem in a text that contains YAML, with the line in that text. */
  readonly inside?: { readonly path: Path; readonly line: number }
}

/** How texts change, and where problems go, while a document becomes plain values. */
export interface ValueReading {
  text(value: string, path: Path): string
  report(path: Path, message: string): void
}

interface Budget {
  nodes: number
  reported: boolean
}

const maxDepth = 100
const maxNodes = 200_000
/** The parser would compare each key of a map with all before it, so `problemsOf` finds keys that are there twice. */
const parseOptions = { prettyErrors: false, strict: true, uniqueKeys: false, version: '1.2' } as const

/** All documents of a YAML text; empty ones are left out. Returns problems with them, never throws. */
export function readYaml(text: string): { documents: LocatedYaml[]; problems: YamlProblem[] } {
  const lines = new LineCounter()
  try {
    const parsed = parseAllDocuments(text, { ...parseOptions, lineCounter: lines })
    const documents = 'empty' in parsed ? [] : parsed
    const isBroken = documents.some(({ errors }) => errors.length > 0)
    const parts = isBroken ? splitDocuments(text) : []
    if (parts.length < 2) return locatedDocuments(documents, text, (offset) => positionAt(lines, offset))
    const read = parts.map(({ start, text }) => {
      const found = parseAllDocuments(text, parseOptions)
      return locatedDocuments('empty' in found ? [] : found, text, (offset) => positionAt(lines, start + offset))
    })
    return { documents: read.flatMap((part) => part.documents), problems: read.flatMap((part) => part.problems) }
  } catch (error) {
    return { documents: [], problems: [{ position: { line: 1, column: 1 }, message: reasonOf(error) }] }
  }
}

function locatedDocuments(
  documents: readonly Document.Parsed[],
  text: string,
  place: (offset: number) => Position,
): { documents: LocatedYaml[]; problems: YamlProblem[] } {
  const [empty, full] = partition(documents, (document) => isEmpty(document.contents))
  return {
    documents: full.map((document) => new LocatedYaml(document, text, place)),
    problems: empty.flatMap((document) => problemsOf(document, place)),
  }
}

/**
 * The texts of the documents. No text within a document can have a line that begins with `---`, but the parser reads over
 * it after an unclosed quote, so that the documents after it would be lost.
 */
export function splitDocuments(text: string): { readonly start: number; readonly text: string }[] {
  const parts: { start: number; text: string }[] = []
  let start = 0
  for (const { index } of text.matchAll(/^---(?=\s|$)/gm)) {
    const before = text.slice(start, index)
    // Directives and comments belong to the document that follows.
    if (before.split('\n').every((line) => /^\s*$|^\s*#|^%/.test(line))) continue
    parts.push({ start, text: before })
    start = index
  }
  return [...parts, { start, text: text.slice(start) }]
}

/**
 * One YAML document that knows the position of each value. A map's value is at its key, a list's at itself; an
 * absent value is at the nearest existing thing around it.
 */
export class LocatedYaml {
  /** Syntax errors; a document with any can't be used. */
  readonly problems: YamlProblem[]
  readonly #document: Document.Parsed
  readonly #source: string
  readonly #place: (offset: number) => Position
  readonly #embedded = new Map<Scalar, LocatedYaml>()
  readonly #pairs = new WeakMap<YAMLMap, ReadonlyMap<string, Pair>>()
  #anchors: ReadonlyMap<Alias, Node | undefined> | undefined

  constructor(document: Document.Parsed, source: string, place: (offset: number) => Position) {
    this.#document = document
    this.#source = source
    this.#place = place
    this.problems = problemsOf(document, place)
  }

  position(path: Path): Position {
    let node: unknown = this.#document.contents
    let offset = startOf(node)
    for (const [depth, step] of path.entries()) {
      const here = this.#resolve(node)
      const embedded = isScalar(here) ? this.#embedded.get(here) : undefined
      if (embedded !== undefined) return embedded.position(path.slice(depth))
      const child = this.#childOf(here, step)
      if (child === undefined) break
      offset = startOf(child.at, offset)
      node = child.node
    }
    return this.#place(offset)
  }

  /** A scalar as it was written, so that `1.10` stays `1.10`; undefined for anything else. */
  scalarText(path: Path): string | undefined {
    const found = this.#find(path)
    if (found.rest.length > 0) return found.embedded?.scalarText(found.rest)
    const { node } = found
    if (!isScalar(node)) return undefined
    return typeof node.value === 'string' ? node.value : (node.source ?? String(node.value))
  }

  /**
   * Reads the text at `path` as YAML: its content becomes part of this document, with positions in the outer text,
   * and so do its syntax errors. Does nothing without text.
   */
  embed(path: Path): void {
    const { node, rest } = this.#find(path)
    if (rest.length > 0 || !isScalar(node) || typeof node.value !== 'string') return
    const text = node.value
    const lines = new LineCounter()
    const outer = this.#outerPositions(node, text)
    const place = (offset: number): Position => outer(positionAt(lines, offset))
    try {
      const document = parseDocument(text, { ...parseOptions, lineCounter: lines })
      const embedded = new LocatedYaml(document, text, place)
      this.#embedded.set(node, embedded)
      const inner = problemsOf(document, (offset) => positionAt(lines, offset))
      for (const [i, problem] of embedded.problems.entries()) {
        this.problems.push({ ...problem, inside: { path, line: inner[i]?.position.line ?? 1 } })
      }
    } catch (error) {
      this.problems.push({ position: place(0), message: reasonOf(error), inside: { path, line: 1 } })
    }
  }

  /** Plain values: maps without a prototype, an empty value in a map as undefined, keys as text. */
  toValue(reading: ValueReading): unknown {
    const budget: Budget = { nodes: maxNodes, reported: false }
    return this.#value(this.#document.contents, [], reading, budget)
  }

  #value(node: unknown, path: Path, reading: ValueReading, budget: Budget): unknown {
    if (path.length > maxDepth || budget.nodes <= 0) {
      if (!budget.reported) reading.report(path.slice(0, 4), 'is nested too deep or too large')
      budget.reported = true
      return null
    }
    budget.nodes--
    const here = this.#resolve(node)
    if (isAlias(node) && here === undefined) reading.report(path, `no anchor "${node.source}" in this document`)
    if (isMap(here)) return this.#mapValue(here.items, path, reading, budget)
    if (isSeq(here)) return here.items.map((item, i) => this.#value(item, [...path, i], reading, budget))
    if (!isScalar(here)) return null
    const embedded = this.#embedded.get(here)
    if (embedded !== undefined) return embedded.#value(embedded.#document.contents, path, reading, budget)
    return typeof here.value === 'string' ? reading.text(here.value, path) : here.value
  }

  #mapValue(items: readonly Pair[], path: Path, reading: ValueReading, budget: Budget): unknown {
    const map: Record<string, unknown> = {}
    for (const pair of items) {
      const key = keyText(pair.key)
      if (key === undefined || isForbiddenKey(key)) {
        reading.report(path, key === undefined ? 'a key must be text' : `"${key}" is not allowed as a key`)
        continue
      }
      const unquoted = unquotedPlaceholder(pair.value)
      if (unquoted !== undefined) {
        reading.report([...path, key], `is empty: YAML reads ${unquoted} as a comment unless it is in quotes`)
      }
      map[key] = this.#value(pair.value, [...path, key], reading, budget) ?? undefined
    }
    return map
  }

  #find(path: Path): { node: unknown; rest: Path; embedded?: LocatedYaml } {
    let node: unknown = this.#resolve(this.#document.contents)
    for (const [depth, step] of path.entries()) {
      const embedded = isScalar(node) ? this.#embedded.get(node) : undefined
      if (embedded !== undefined) return { node, rest: path.slice(depth), embedded }
      const child = this.#childOf(node, step)
      if (child === undefined) return { node, rest: path.slice(depth) }
      node = this.#resolve(child.node)
    }
    return { node, rest: [] }
  }

  /** Finds all anchors in one walk: `Alias.resolve` walks through the document for each alias. */
  #resolve(node: unknown): unknown {
    if (!isAlias(node)) return node
    this.#anchors ??= anchorsOf(this.#document)
    return this.#anchors.get(node)
  }

  /** Indexed, since a map may have a problem in each of its values. */
  #childOf(node: unknown, step: string | number): { node: unknown; at: unknown } | undefined {
    if (isMap(node)) {
      const pairs = this.#pairs.get(node) ?? pairsOf(node)
      this.#pairs.set(node, pairs)
      const pair = pairs.get(String(step))
      return pair === undefined ? undefined : { node: pair.value, at: pair.key }
    }
    if (isSeq(node) && typeof step === 'number' && step < node.items.length) {
      return { node: node.items[step], at: node.items[step] }
    }
    return undefined
  }

  /** Lines of a literal block are lines of the outer text, indented; any other text is at its start. */
  #outerPositions(node: Scalar, text: string): (inner: Position) => Position {
    const start = startOf(node)
    if (node.type !== 'BLOCK_LITERAL') return () => this.#place(start)
    const innerLines = text.split('\n')
    const outerLines: { offset: number; length: number }[] = []
    for (let offset = this.#source.indexOf('\n', start) + 1; outerLines.length < innerLines.length; ) {
      const end = this.#source.indexOf('\n', offset)
      const line = this.#source.slice(offset, end < 0 ? undefined : end).replace(/\r$/, '')
      outerLines.push({ offset, length: line.length })
      if (end < 0) break
      offset = end + 1
    }
    return ({ line, column }) => {
      const outer = outerLines[line - 1]
      if (outer === undefined) return this.#place(start)
      const moved = Math.max(0, outer.length - (innerLines[line - 1]?.length ?? outer.length))
      return this.#place(outer.offset + moved + column - 1)
    }
  }
}

/** After the first error the parser only guesses, and reports most tokens that follow: its other errors are left out. */
function problemsOf(document: Document.Parsed, place: (offset: number) => Position): YamlProblem[] {
  const found = [...document.errors.slice(0, 1), ...document.warnings].map((problem) => ({
    position: place(problem.pos[0]),
    message: `YAML: ${problem.message.replace(/\s+/g, ' ')}`,
  }))
  if (document.errors.length > 0) return found
  const repeated = repeatedKeys(document).map((key) => ({
    position: place(startOf(key)),
    message: 'YAML: Map keys must be unique',
  }))
  return [...found, ...repeated]
}

/** By key, the first of several. */
function pairsOf({ items }: YAMLMap): Map<string, Pair> {
  const pairs = new Map<string, Pair>()
  for (const pair of items) {
    const key = keyText(pair.key)
    if (key !== undefined && !pairs.has(key)) pairs.set(key, pair)
  }
  return pairs
}

/** The node of each alias: the last one before it that has its anchor. */
function anchorsOf(document: Document.Parsed): Map<Alias, Node | undefined> {
  const latest = new Map<string, Node>()
  const found = new Map<Alias, Node | undefined>()
  visit(document, {
    Alias: (_key, alias) => void found.set(alias, latest.get(alias.source)),
    Value: (_key, node) => {
      if (node.anchor !== undefined) latest.set(node.anchor, node)
    },
  })
  return found
}

function repeatedKeys(document: Document.Parsed): unknown[] {
  const repeated: unknown[] = []
  visit(document, {
    Map: (_key, { items }) => {
      const seen = new Set<string>()
      for (const { key } of items) {
        const text = keyText(key)
        if (text === undefined) continue
        if (seen.has(text)) repeated.push(key)
        seen.add(text)
      }
    },
  })
  return repeated
}

const keyText = (key: unknown): string | undefined =>
  isScalar(key) && key.value !== null && key.value !== undefined ? String(key.value) : undefined

/** `#[NAME]` after an empty value. */
function unquotedPlaceholder(node: unknown): string | undefined {
  if (!isScalar(node) || node.value !== null) return undefined
  const name = /^\[[A-Za-z_][^\]]*\]/.exec(node.comment ?? '')
  return name === null ? undefined : `#${name[0]}`
}

const startOf = (node: unknown, otherwise = 0): number =>
  (node as { range?: readonly number[] | null } | null | undefined)?.range?.[0] ?? otherwise

function positionAt(lines: LineCounter, offset: number): Position {
  const { line, col } = lines.linePos(offset)
  return { line: Math.max(1, line), column: Math.max(1, col) }
}

function partition<T>(items: readonly T[], test: (item: T) => boolean): [T[], T[]] {
  return [items.filter(test), items.filter((item) => !test(item))]
}

const isEmpty = (node: Node | null): boolean => node === null || (isScalar(node) && node.value === null)

const reasonOf = (error: unknown): string => `YAML: ${error instanceof Error ? error.message : String(error)}`
