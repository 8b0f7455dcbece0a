import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, parseAllDocuments } from 'yaml'
import { renderTask } from '#adapters/workflow-tasks/shared/task-template.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isForbiddenKey, type JsonValue } from '#kernel/json.ts'
import { parseTemplate, type Template } from '#kernel/template.ts'
import type { TaskContext } from '#sdk/workflow/workflow-task.ts'

type Values = Pick<TaskContext, 'request' | 'user'>

/**
 * A YAML or JSON text whose values contain `$key$`. The text is parsed before any value is known, so a value can't add
 * fields, lines or documents: it stays one text, or part of one.
 */
export interface ObjectTemplate {
  readonly root: TemplateNode
  /** Throws BAD_REQUEST for a value that can't be stored. */
  render(values: Values): JsonValue
}

export type TemplateNode =
  | { readonly kind: 'fixed'; readonly value: string | number | boolean | null }
  /** `plain`: the whole value is an unquoted placeholder, which may become a number or a flag. */
  | { readonly kind: 'text'; readonly text: Template; readonly plain: boolean }
  | { readonly kind: 'list'; readonly items: readonly TemplateNode[] }
  | { readonly kind: 'map'; readonly entries: readonly TemplateEntry[] }

type TemplateEntry =
  | { readonly key: Template; readonly value: TemplateNode }
  /** A line of its own with one placeholder, whose value is `name: text` or empty. */
  | { readonly line: Template }

const maxDepth = 50
const maxNodes = 10_000
/** All scalars stay text, so that this file decides what a number is. */
const parseOptions = { prettyErrors: false, uniqueKeys: true, schema: 'failsafe' } as const

/** Throws an Error that says what is wrong, and in which line of the text. */
export function parseObjectTemplate(text: string): ObjectTemplate {
  const whole = readDocument(text)
  const withEntries = whole.problem === undefined ? whole : readDocument(markLines(text))
  if (withEntries.problem !== undefined || withEntries.document === undefined) {
    throw new Error(whole.problem ?? 'the template is empty')
  }
  const root = new TemplateReader(withEntries.document).node(withEntries.document.contents, 0)
  return { root, render: (values) => render(root, [], values) }
}

interface ReadDocument {
  readonly document?: Document
  readonly problem?: string
}

function readDocument(text: string): ReadDocument {
  const lineCounter = new LineCounter()
  const documents = parseAllDocuments(text, { ...parseOptions, lineCounter })
  const found = 'empty' in documents ? [] : documents
  const full = found.filter(({ contents }) => contents !== null && !(isScalar(contents) && contents.source === ''))
  const broken = found.flatMap(({ errors, warnings }) => [...errors, ...warnings])[0]
  if (broken !== undefined) {
    return { problem: `line ${lineCounter.linePos(broken.pos[0]).line}: ${broken.message}` }
  }
  if (full.length > 1) return { problem: 'the template has several documents; use one task for each object' }
  const [document] = full
  return document === undefined ? {} : { document }
}

const placeholder = '\\$[A-Za-z_][A-Za-z0-9_.-]{0,255}\\$'
const lineMark = 'gatehouse.dev/line '
const loneLine = new RegExp(`^([ \\t]*)(${placeholder})[ \\t]*$`, 'gm')
const markedLine = new RegExp(`"${lineMark}(${placeholder})": ""`, 'g')

/** A line with nothing but a placeholder is not YAML in a map, so it becomes a key that can be recognized. */
const markLines = (text: string): string => text.replace(loneLine, `$1"${lineMark}$2": ""`)

/** In a block of text, the line is the author's own. */
const restoreLines = (text: string): string => text.replace(markedLine, '$1')

class TemplateReader {
  readonly #document: Document
  #nodes = 0

  constructor(document: Document) {
    this.#document = document
  }

  node(node: unknown, depth: number): TemplateNode {
    if (++this.#nodes > maxNodes || depth > maxDepth) throw new Error('the template is too deep or too large')
    if (isAlias(node)) return this.node(node.resolve(this.#document), depth + 1)
    if (isMap(node)) {
      return { kind: 'map', entries: node.items.map(({ key, value }) => this.#entry(key, value, depth)) }
    }
    if (isSeq(node)) return { kind: 'list', items: node.items.map((item) => this.node(item, depth + 1)) }
    if (!isScalar(node)) return { kind: 'fixed', value: null }
    const isPlain = node.type === 'PLAIN' || node.type === undefined
    const written = typeof node.value === 'string' ? node.value : (node.source ?? '')
    const text = keysOf(restoreLines(written))
    if (text.keys.length === 0) return { kind: 'fixed', value: isPlain ? plainValue(written) : text.text }
    return { kind: 'text', text, plain: isPlain && /^\$[^$]+\$$/.test(written) }
  }

  #entry(key: unknown, value: unknown, depth: number): TemplateEntry {
    if (!isScalar(key)) throw new Error('a key of the template is not a text')
    const name = String(key.value ?? '')
    if (name.startsWith(lineMark)) return { line: keysOf(name.slice(lineMark.length)) }
    if (isForbiddenKey(name)) throw new Error(`"${name}" is not allowed as a key`)
    return { key: keysOf(name), value: this.node(value, depth + 1) }
  }
}

const keysOf = (text: string): Template => parseTemplate(text, { keys: true, attributes: false })

/** As the YAML reader of Kubernetes: also octal numbers, `yes` and `on`. */
function plainValue(text: string): string | number | boolean | null {
  if (/^(~|null|Null|NULL)?$/.test(text)) return null
  if (/^(true|True|TRUE|yes|Yes|YES|on|On|ON)$/.test(text)) return true
  if (/^(false|False|FALSE|no|No|NO|off|Off|OFF)$/.test(text)) return false
  if (/^[-+]?(0|[1-9][0-9]{0,14})$/.test(text)) return Number(text)
  if (/^0o?[0-7]{1,15}$/.test(text)) return Number.parseInt(text.replace(/^0o?/, ''), 8)
  if (/^0x[0-9a-fA-F]{1,12}$/.test(text)) return Number(text)
  if (/^[-+]?([0-9]{1,15}\.[0-9]{0,15}|\.[0-9]{1,15}|[0-9]{1,15}(\.[0-9]{0,15})?[eE][-+]?[0-9]{1,2})$/.test(text)) {
    return Number(text)
  }
  return text
}

function render(node: TemplateNode, path: readonly string[], values: Values): JsonValue {
  switch (node.kind) {
    case 'fixed':
      return node.value
    case 'text': {
      const text = renderText(node.text, values)
      return node.plain && !holdsText(path) ? typedValue(text) : text
    }
    case 'list':
      return node.items.map((item) => render(item, path, values))
    case 'map':
      return renderMap(node.entries, path, values)
  }
}

function renderMap(entries: readonly TemplateEntry[], path: readonly string[], values: Values): JsonValue {
  const map = new Map<string, JsonValue>()
  for (const entry of entries) {
    const pair = 'line' in entry ? readLine(renderText(entry.line, values)) : [renderText(entry.key, values)]
    if (pair === undefined) continue
    const [name = '', text = ''] = pair
    if (isForbiddenKey(name)) throw new GatewayError('BAD_REQUEST', `"${name}" is not allowed as a key of an object`)
    if (map.has(name)) throw new GatewayError('BAD_REQUEST', `the object has the key ${JSON.stringify(name)} twice`)
    map.set(name, 'line' in entry ? text : render(entry.value, [...path, name], values))
  }
  return Object.fromEntries(map)
}

/** One entry, both parts of which are text. */
function readLine(line: string): [string, string] | undefined {
  const [, name, text] = /^\s*([^\s:][^:]*?)\s*:\s(.*)$/s.exec(line) ?? []
  if (name !== undefined && text !== undefined) return [name, text.trim()]
  if (line.trim() === '') return undefined
  throw new GatewayError('BAD_REQUEST', 'a line of the template is neither empty nor "name: value"')
}

function renderText(text: Template, values: Values): string {
  const rendered = renderTask(text, values)
  if (rendered.isWellFormed()) return rendered
  throw new GatewayError('BAD_REQUEST', 'a value for a Kubernetes object is not valid Unicode')
}

/** Maps and fields that Kubernetes defines as text, where `true` or `42` would be rejected. */
const textMaps: ReadonlySet<string> = new Set([
  'metadata',
  'data',
  'stringData',
  'binaryData',
  'labels',
  'annotations',
  'matchLabels',
  'nodeSelector',
  'subjects',
  'roleRef',
])
const textFields: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'name', 'namespace', 'value', 'image'])

const holdsText = (path: readonly string[]): boolean =>
  path.some((name) => textMaps.has(name)) || textFields.has(path.at(-1) ?? '')

function typedValue(text: string): string | number | boolean {
  if (text === 'true' || text === 'false') return text === 'true'
  return /^-?(0|[1-9][0-9]{0,14})$/.test(text) ? Number(text) : text
}

/** The value of the template at these names, before values are known. */
export function nodeAt(root: TemplateNode, path: readonly string[]): TemplateNode | undefined {
  let node: TemplateNode | undefined = root
  for (const name of path) {
    if (node?.kind !== 'map') return undefined
    const entry: TemplateEntry | undefined = node.entries.find((one) => 'key' in one && one.key.text === name)
    node = entry !== undefined && 'key' in entry ? entry.value : undefined
  }
  return node
}
