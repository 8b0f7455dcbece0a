import { parseDocument } from 'yaml'
import { readJsonTemplate, type TemplateNode } from '#identity/mapping/template.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import { isJsonObject, type JsonValue } from '#kernel/json.ts'
import { suggestion } from '#kernel/suggest.ts'
import { extendResourceSchema, type ReportProblem, readSchema } from '#protocols/scim/schema/read-schema.ts'
import {
  type AttributePath,
  type AttributeRef,
  pathKey,
  type ResourceSchema,
} from '#protocols/scim/schema/resource-schema.ts'
import { defaultSubAttribute, type Schema, type SchemaAttribute } from '#protocols/scim/schema/schema.ts'
import type { MappingRule } from '#sdk/mapper/mapping.ts'
import type { ParsedParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { parameterTable } from './parameter-table.ts'
import { type ListPlace, PlainList } from './plain-list.ts'
import { SchemaMapping } from './schema-mapping.ts'

type Direction = 'scim2tremolo' | 'tremolo2scim'

/** The list and the `.source` parameters must name the same attributes. */
export function readRules(
  direction: Direction,
  values: ParsedParameters<typeof parameterTable>,
  params: Params,
  issues: Issues,
): MappingRule[] {
  const sources = values[`${direction}.<attribute>.source`]
  const types = values[`${direction}.<attribute>.sourceType`]
  const listed = values[direction]
  for (const part of ['source', 'sourceType', 'targetType'] as const) {
    for (const attribute of values[`${direction}.<attribute>.${part}`].keys()) {
      if (listed.includes(attribute)) continue
      const name = `${direction}.${attribute}.${part}`
      issues.error(
        params.pathOf(name),
        `"${attribute}" is not in the list ${direction}${suggestion(attribute, listed)}`,
      )
    }
  }
  return listed.flatMap((attribute, i) => {
    const source = sources.get(attribute)
    if (source === undefined) {
      issues.error(params.pathOf(direction, i), `"${attribute}" has no parameter "${direction}.${attribute}.source"`)
      return []
    }
    const path = params.pathOf(`${direction}.${attribute}.source`)
    return [{ attribute, source, sourceType: types.get(attribute) ?? 'user', path }]
  })
}

/** Attributes that the gateway sets itself. */
const ownAttributes = new Set(['id', 'schemas', 'meta', 'password'])

/** Where each rule of tremolo2scim puts its value; rules that cannot be used are reported and left out. */
export function resolvePaths(
  rules: readonly MappingRule[],
  schema: ResourceSchema,
  issues: Issues,
): Map<string, AttributePath> {
  const paths = new Map<string, AttributePath>()
  for (const { attribute, path } of rules) {
    const resolved = schema.resolve(attribute)
    if (resolved?.kind !== 'attribute') {
      const known = Array.from(schema.attributes(), (ref) => ref.attribute.name)
      issues.error(path, `no SCIM user attribute "${attribute}"${suggestion(attribute, known)}`)
    } else if (ownAttributes.has(resolved.attribute.name)) {
      issues.warning(path, `"${resolved.attribute.name}" is set by the gateway; the mapping is not used`)
    } else if (resolved.sub !== undefined && resolved.attribute.multiValued) {
      issues.error(path, `"${attribute}" is part of a list; map "${resolved.attribute.name}" as a whole`)
    } else {
      paths.set(attribute, resolved)
    }
  }
  return paths
}

/** The parts of complex attributes that rules of tremolo2scim show, by `pathKey`, as far as their templates say which. */
export function shownParts(
  rules: readonly MappingRule[],
  scimPaths: ReadonlyMap<string, AttributePath>,
): ReadonlyMap<string, ReadonlySet<string>> {
  const shown = new Map<string, ReadonlySet<string>>()
  for (const { attribute, source, sourceType } of rules) {
    const path = scimPaths.get(attribute)
    const names = path === undefined || sourceType !== 'composite' ? undefined : memberNames(source)
    if (path !== undefined && names !== undefined) shown.set(pathKey(path), new Set(names))
  }
  return shown
}

/** Of the object, or of the objects in the list; undefined for any other template. */
function memberNames(source: string): string[] | undefined {
  let node: TemplateNode
  try {
    node = readJsonTemplate(source)
  } catch {
    return undefined
  }
  const names: string[] = []
  for (const one of node.kind === 'array' ? node.elements : [node]) {
    if (one.kind === 'object') names.push(...one.members.map(([name]) => name))
    else if (one.kind === 'constant' && isJsonObject(one.value)) names.push(...Object.keys(one.value))
    else return undefined
  }
  return names
}

/** One-to-one rules also name the attribute to filter by; rules that show an attribute take precedence. */
export function derivedFilterNames(
  incoming: readonly MappingRule[],
  outgoing: readonly MappingRule[],
  schema: ResourceSchema,
  scimPaths: ReadonlyMap<string, AttributePath>,
): ReadonlyMap<AttributePath, string> {
  const names = new Map<AttributePath, string>()
  const add = (path: AttributePath | undefined, internal: string): void => {
    // Users are found by their login itself, not by a mapped copy.
    if (path !== undefined && path.attribute.name !== 'userName') names.set(path, internal)
  }
  for (const { sourceType, source, attribute } of incoming) {
    if (sourceType === 'user') add(schema.resolveAttribute(source), attribute)
  }
  for (const { sourceType, source, attribute } of outgoing) {
    if (sourceType === 'user') add(scimPaths.get(attribute), source)
  }
  return names
}

/** The internal attribute of a SCIM attribute, by `pathKey`. */
export type FilterNames = ReadonlyMap<string, string>

/**
 * Reads `scim=internal` pairs, in one comma-separated text or repeated. They take precedence over `derived`, the names
 * from the one-to-one rules of the mappings.
 */
export function readFilterNames(
  params: Params,
  name: string,
  schema: ResourceSchema,
  issues: Issues,
  derived: ReadonlyMap<AttributePath, string>,
): FilterNames {
  const names = new Map<string, string>()
  for (const [path, internal] of derived) if (path.attribute.type !== 'complex') names.set(pathKey(path), internal)
  for (const [i, value] of params.values(name).entries()) {
    for (const pair of value.split(',')) {
      if (pair.trim() !== '')
        readPair(pair, (message, level) => issues[level](params.pathOf(name, i), message), schema, names)
    }
  }
  return names
}

function readPair(
  pair: string,
  report: (message: string, level: 'error' | 'warning') => void,
  schema: ResourceSchema,
  names: Map<string, string>,
): void {
  const cut = pair.lastIndexOf('=')
  const scim = pair.slice(0, Math.max(0, cut)).trim()
  const internal = pair.slice(cut + 1).trim()
  if (cut < 0 || scim === '' || internal === '') {
    report(`"${pair.trim()}" is not of the form scim=internal`, 'error')
    return
  }
  const path = schema.resolveAttribute(scim)
  if (path === undefined) {
    report(`"${scim}" is not a SCIM attribute of ${schema.core.name}, so no filter can use it`, 'warning')
    return
  }
  const inner = path.sub === undefined ? defaultSubAttribute(path.attribute) : undefined
  names.set(pathKey(inner === undefined ? path : { ...path, sub: inner }), internal)
}

/** Attributes that the gateway sets itself, and login and password, which the mapping does not handle. */
const ownOfUsers = new Set(['schemas', 'id', 'meta', 'userName', 'password', 'groups'])
export const ownOfGroups = new Set(['schemas', 'id', 'meta', 'displayName', 'members'])

const nothing = { paths: () => false, names: new Set<string>() }

/** An empty mapping, if only the mapping lines apply. */
export const noMapping = (schema: ResourceSchema): SchemaMapping => new SchemaMapping(schema, [], nothing)

/**
 * The built-in mapping of users, except where mapping lines replace it: a SCIM attribute that a line shows is left to the
 * lines in both directions, and an internal attribute that a line produces is not produced here.
 */
export function userMapping(
  schema: ResourceSchema,
  incoming: readonly MappingRule[],
  shown: Iterable<AttributePath>,
  lists: readonly PlainList[] = [],
): SchemaMapping {
  const keys = new Set(Array.from(shown, pathKey))
  const excluded = {
    paths: (path: AttributePath) => keys.has(pathKey(path)) || keys.has(pathKey(wholeOf(path))),
    names: new Set(incoming.map(({ attribute }) => attribute.toLowerCase())),
  }
  return new SchemaMapping(schema, refs(schema, ownOfUsers), excluded, lists)
}

/** The built-in mapping of another type, of all attributes but its name. */
export const namedMapping = (schema: ResourceSchema, name: string): SchemaMapping =>
  new SchemaMapping(schema, refs(schema, new Set(['schemas', 'id', 'meta', name])), nothing)

/** A list in plain attributes, and the parameter that names them. */
export interface ConfiguredList {
  readonly list: PlainList
  readonly path: Path
}

/** Characters of other notations, such as `;` between pairs, are in no name. */
const listPair = /^([^=;:"'[\](){}]*)=\s*([^\s=;"'[\](){}]+)$/

/**
 * Reads `list.<attribute>`: which internal attributes store the elements of a list, as pairs `type=attribute`. Problems are
 * reported, and the list is left out.
 */
export function readLists(
  values: ParsedParameters<typeof parameterTable>,
  schema: ResourceSchema,
  shown: Iterable<AttributePath>,
  params: Params,
  issues: Issues,
): ConfiguredList[] {
  const byLines = new Set(Array.from(shown, (path) => pathKey(wholeOf(path))))
  const users = new Map<string, string>()
  const listed = new Map<string, string>()
  return Array.from(values['list.<attribute>']).flatMap(([attribute, text = '']) => {
    const name = `list.${attribute}`
    const report = (message: string): [] => {
      issues.error(params.pathOf(name), message)
      return []
    }
    if (values.mapping !== 'scim') return report(`parameter "${name}" needs "mapping: scim"`)
    const ref = schema.resolveAttribute(attribute)
    const isList = ref?.attribute.multiValued === true && ref.attribute.type === 'complex' && ref.sub === undefined
    if (ref === undefined || !isList || (ref.extension === undefined && ownOfUsers.has(ref.attribute.name))) {
      const known = Array.from(schema.attributes()).filter((one) => one.attribute.multiValued)
      const names = known.map((one) => one.attribute.name)
      return report(`"${attribute}" is not a list of complex values of users${suggestion(attribute, names)}`)
    }
    if (byLines.has(pathKey(ref))) return report(`"${attribute}" is shown by tremolo2scim; remove one of the two`)
    const earlier = listed.get(pathKey(ref))
    if (earlier !== undefined) return report(`"${attribute}" is listed by "list.${earlier}" too; remove one of the two`)
    listed.set(pathKey(ref), attribute)
    const places: ListPlace[] = []
    for (const pair of text.split(',').map((one) => one.trim())) {
      const [, written = '', internal = ''] = listPair.exec(pair) ?? []
      if (internal === '') return report(`"${pair}" is not of the form type=attribute, such as work=mail`)
      const type = written.trim() === '' ? undefined : written.trim()
      const isSecond = places.some((other) => other.type?.toLowerCase() === type?.toLowerCase())
      if (isSecond) return report(`the type "${type ?? ''}" is listed twice`)
      const same = places.find((other) => other.name.toLowerCase() === internal.toLowerCase())
      if (same !== undefined && type !== undefined) {
        const first = same.type === undefined ? 'no type' : `"${same.type}"`
        const remedy = 'give each type an attribute of its own; only =attribute, at the end, may repeat one'
        return report(`"${same.name}" is listed for ${first} and "${type}", so types would be lost; ${remedy}`)
      }
      places.push({ type, name: same?.name ?? internal })
    }
    if (places.some(({ type }) => type !== undefined) && schema.subAttribute(ref.attribute, 'type') === undefined)
      return report(`elements of "${attribute}" have no type; use =attribute`)
    const list = new PlainList(wholeOf(ref), places)
    const taken = list.names.find((internal) => (users.get(internal.toLowerCase()) ?? attribute) !== attribute)
    if (taken !== undefined) return report(`"${taken}" already stores "${users.get(taken.toLowerCase())}"`)
    for (const internal of list.names) users.set(internal.toLowerCase(), attribute)
    return [{ list, path: params.pathOf(name) }]
  })
}

/** The built-in mapping of groups, without the attributes that `groupFilterScim2Ldap` renames. */
export function groupMapping(schema: ResourceSchema, names: FilterNames): SchemaMapping {
  return new SchemaMapping(schema, refs(schema, ownOfGroups), {
    paths: (path) => names.has(pathKey(path)) || names.has(pathKey(wholeOf(path))),
    names: new Set(),
  })
}

/** In filters these are the entry's own login, id and name, so no attribute can have these names. */
const reserved = new Set(['id', 'userid', 'name', 'tremolo_user_id'])

export function checkNames(mapping: SchemaMapping, login: string, path: Path, issues: Issues): void {
  const names = mapping.produces.map((name) => name.toLowerCase())
  const twice = mapping.produces.find((_, i) => names.indexOf(names[i] ?? '') !== i)
  if (twice !== undefined) {
    issues.error(path, `the internal attribute "${twice}" would store two SCIM attributes; give the list another name`)
  }
  for (const name of mapping.produces) {
    if (reserved.has(name.toLowerCase()) || name.toLowerCase() === login.toLowerCase()) {
      issues.error(path, `the schema attribute "${name}" has a reserved name; add a mapping line for it`)
    }
  }
}

const refs = (schema: ResourceSchema, own: ReadonlySet<string>): AttributeRef[] =>
  Array.from(schema.attributes()).filter(
    ({ attribute, extension }) => extension !== undefined || !own.has(attribute.name),
  )

const wholeOf = ({ attribute, extension }: AttributePath): AttributeRef =>
  extension === undefined ? { attribute } : { attribute, extension }

const maxLength = 256 * 1024

/**
 * Extends the base with the schemas of the parameter, each as JSON or YAML text. A schema with the id of the core schema
 * or of an existing extension adds attributes to it; any other is a new extension. Problems are reported at the parameter,
 * and the schema is left out.
 */
export function readSchemas(params: Params, name: string, base: ResourceSchema, issues: Issues): ResourceSchema {
  let schema = base
  for (const [i, text] of params.values(name).entries()) {
    if (text === '') continue
    const at = params.pathOf(name, i)
    const report: ReportProblem = (path, message) => {
      issues.error(at, `"${name}": ${path.length === 0 ? message : `${path.join('.')}: ${message}`}`)
    }
    const declared = readText(text, report)
    if (declared === undefined) continue
    for (const { name: attribute } of declared.attributes.filter(isUnique)) {
      issues.warning(
        at,
        `"${name}": values of "${attribute}" are not checked for uniqueness, so its "uniqueness" is shown as none`,
      )
    }
    const kept = { ...declared, attributes: declared.attributes.map(notUnique) }
    schema = extendResourceSchema(schema, [kept], ([, ...path], message) => report(path, message))
  }
  return schema
}

/** Only a target could guarantee it. */
const isUnique = ({ uniqueness, subAttributes }: SchemaAttribute): boolean =>
  uniqueness !== 'none' || subAttributes.some(isUnique)

const notUnique = (attribute: SchemaAttribute): SchemaAttribute => ({
  ...attribute,
  uniqueness: 'none',
  subAttributes: attribute.subAttributes.map(notUnique),
})

function readText(text: string, report: ReportProblem): Schema | undefined {
  if (text.length > maxLength) {
    report([], `the schema is longer than ${maxLength} characters`)
    return undefined
  }
  const document = parseDocument(text, { prettyErrors: false, uniqueKeys: true, version: '1.2' })
  const [problem] = document.errors
  if (problem !== undefined) {
    report([], `the schema is neither JSON nor YAML: ${problem.message}`)
    return undefined
  }
  return readSchema(plainValue(document), report)
}

/** Null, which is not a schema, for a text with aliases, which could expand without limit. */
function plainValue(document: ReturnType<typeof parseDocument>): JsonValue {
  try {
    return document.toJS({ maxAliasCount: 0 })
  } catch {
    return null
  }
}
