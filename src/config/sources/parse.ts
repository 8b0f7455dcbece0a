import { groups, type Kind, kinds, otherKinds } from '#config/build/kinds.ts'
import { ConfigDocument, FixedPlace, type Place } from '#config/context/config-document.ts'
import { readYaml, type ValueReading, type YamlProblem } from '#config/context/locate.ts'
import { foundWords } from '#config/context/schema-issues.ts'
import { unservedClass } from '#config/context/unknown-class.ts'
import type { Issues } from '#kernel/issues.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import { suggestion } from '#kernel/suggest.ts'
import type { SourceFile } from './folder-documents.ts'
import { openUnisonKind } from './openunison-values.ts'

/** One document and its kind, before its values are substituted. */
export interface ParsedObject {
  readonly document: ConfigDocument
  readonly kind: Kind
  /** Undefined if the document has none, or it is not text. */
  readonly name: string | undefined
  /** False if its YAML is invalid: its name counts, its content does not. */
  readonly usable: boolean
}

/** A document or file that could not be read as an object. */
export interface UnreadPart {
  readonly place: Place
  /** As written; `file` if not even that is known. */
  readonly kind: string
  readonly name: string | undefined
}

export interface ParsedFiles {
  readonly objects: readonly ParsedObject[]
  /** Documents without kind and apiVersion, and the `OpenUnison` object. */
  readonly values: readonly ConfigDocument[]
  /** Parts with errors. */
  readonly unread: readonly UnreadPart[]
}

/** Splits the files into documents, and sorts them by kind. */
export function parseFiles(files: readonly SourceFile[], issues: Issues): ParsedFiles {
  const objects: ParsedObject[] = []
  const values: ConfigDocument[] = []
  const unread: UnreadPart[] = []
  for (const file of files) {
    const { documents, problems } = readYaml(file.text)
    if (problems.length > 0) {
      const place = new FixedPlace(file.name)
      unread.push({ place, kind: 'file', name: undefined })
      for (const problem of problems) reportYaml(problem, file, holdsValues(file.name) ? 'everything' : place, issues)
    }
    for (const yaml of documents) {
      const document = new ConfigDocument(file.name, yaml, file.isObject !== true)
      const found = classify(document, issues.for(document))
      if (found !== undefined && found !== 'values' && found !== 'tests') {
        for (const path of found.yamlTexts) yaml.embed(path)
      }
      const isShared = found === 'values' || (found === undefined && holdsValues(file.name))
      for (const problem of yaml.problems) reportYaml(problem, file, isShared ? 'everything' : document, issues)
      const usable = yaml.problems.length === 0
      const name = textAt(document, ['metadata', 'name'])
      if (found === 'tests') continue
      if (found === undefined) unread.push({ place: document, kind: textAt(document, ['kind']) ?? noKind, name })
      else if (found !== 'values') objects.push({ document, kind: found, name, usable })
      else if (usable) values.push(document)
    }
  }
  return { objects, values, unread }
}

/** The kind of a document that names none. */
export const noKind = 'document'

/** Values change the meaning of every object, so that nothing can be served without them. */
export const holdsValues = (file: string): boolean => /(?:^|\/)values\.ya?ml$|^ConfigMap\/[^/]+\/[^/]+\//.test(file)

/** Whether a part that can't be read may be a values document: nothing shows that it isn't one. */
export const mayHoldValues = ({ kind }: UnreadPart): boolean =>
  kind === 'file' || kind === noKind || kind === openUnisonKind

/** If a file has no lines, the path and the line within the text at that path give the place. */
function reportYaml(
  { position, message, inside }: YamlProblem,
  { name, isObject }: SourceFile,
  concerns: Place | 'everything',
  issues: Issues,
): void {
  const filed = issues.for(new FixedPlace(name, position, isObject !== true, concerns))
  if (isObject !== true || inside === undefined) filed.error([], message)
  else filed.error(inside.path, `line ${inside.line}: ${message}`)
}

/** Reads only a document's top level; an invalid document may still have a kind. */
function classify(document: ConfigDocument, issues: Issues): Kind | 'values' | 'tests' | undefined {
  const broken = document.yaml.problems.length > 0
  const top = document.yaml.toValue(untouched)
  if (!isJsonObject(top)) {
    if (!broken) issues.error([], `expected a map with apiVersion, kind, metadata and spec, found ${foundWords(top)}`)
    return undefined
  }
  const { kind: name, apiVersion } = top
  if (isPolicyTests(top)) return 'tests'
  if (name === undefined && apiVersion === undefined && !('spec' in top) && !('metadata' in top)) return 'values'
  if (typeof name !== 'string' || typeof apiVersion !== 'string') {
    for (const key of ['apiVersion', 'kind'] as const) {
      const value = top[key]
      if (typeof value === 'string' || broken) continue
      issues.error([key], value === undefined ? 'is required' : `expected text, found ${foundWords(value)}`)
    }
    return undefined
  }
  const [group, version] = splitVersion(apiVersion)
  const kind = kinds.find((candidate) => candidate.kind === name)
  // The specification writes versions without a group.
  const isKnownGroup = !apiVersion.includes('/') || (groups as readonly string[]).includes(group)
  if (name === openUnisonKind && isKnownGroup) return 'values'
  if (kind === undefined || !isKnownGroup) {
    reportUnknown(top, group, kind, issues)
    return undefined
  }
  if (!kind.versions.includes(version)) {
    const known = kind.versions.map((known) => (group === '' ? known : `${group}/${known}`))
    issues.error(['apiVersion'], `${name} has no version "${apiVersion}"; it has ${known.join(' and ')}`)
    return undefined
  }
  return kind
}

/** A test file of `gatehouse sts test` may be beside the configuration; it is not part of it. */
const isPolicyTests = (top: JsonObject): boolean => Object.keys(top).join() === 'tests' && Array.isArray(top['tests'])

function reportUnknown(top: JsonObject, group: string, kind: Kind | undefined, issues: Issues): void {
  const [name, apiVersion] = [String(top['kind']), String(top['apiVersion'])]
  const reason = Object.hasOwn(otherKinds, name) ? otherKinds[name] : undefined
  if (kind !== undefined) {
    issues.error(
      ['apiVersion'],
      `${name} is of ${groups.join(' or ')}, not of "${apiVersion}"${suggestion(group, groups)}`,
    )
  } else if (reason !== undefined) {
    const listener = listenerReason(name, top)
    const level = listener?.includes('it is not needed') ? 'warning' : 'error'
    issues[level](['kind'], `"${name}" is not read: ${listener ?? reason}`)
  } else {
    const hint = suggestion(
      name,
      kinds.map((candidate) => candidate.kind),
    )
    const isOurs = (groups as readonly string[]).includes(group)
    const advice = isOurs ? '' : '; remove the object, or make a folder without it with gatehouse import'
    issues.error(['kind'], `no kind "${name}"${hint || advice}`)
  }
}

/** The class of a listener often says why it is not needed: such an object may stay. */
function listenerReason(kind: string, { spec }: JsonObject): string | undefined {
  const className = isJsonObject(spec) ? spec['className'] : undefined
  if (kind !== 'MessageListener' || typeof className !== 'string') return undefined
  return unservedClass('message listener', className)
}

function splitVersion(apiVersion: string): [group: string, version: string] {
  const slash = apiVersion.indexOf('/')
  return slash < 0 ? ['', apiVersion] : [apiVersion.slice(0, slash), apiVersion.slice(slash + 1)]
}

const untouched: ValueReading = { text: (value) => value, report: () => {} }

function textAt(document: ConfigDocument, path: readonly string[]): string | undefined {
  const text = document.yaml.scalarText(path)
  return text === '' ? undefined : text
}
