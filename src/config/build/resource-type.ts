import type { BuildContext } from '#config/context/build-context.ts'
import type { ResourceTypeSpec } from '#config/kinds/resource-type.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import { suggestion } from '#kernel/suggest.ts'
import { extendResourceSchema, type ReportProblem, readSchema } from '#protocols/scim/schema/read-schema.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { coreUrn, type Schema, type SchemaAttribute } from '#protocols/scim/schema/schema.ts'
import { enterpriseUserSchema } from '#protocols/scim/schema/standard-schemas.ts'

/** The endpoints and types of every gateway, in lower case (RFC 7644 3.2). */
const ownEndpoints = ['users', 'groups', 'me', 'bulk', 'serviceproviderconfig', 'resourcetypes', 'schemas']
const ownTypes = ['user', 'group', 'me', 'serviceproviderconfig', 'resourcetype', 'schema']

/** Attributes that stores, workflows or messages of SCIM know by these names, in lower case. */
const reservedAttributes: Readonly<Record<string, string>> = {
  userid: 'it is the name that stores know a resource by',
  tremolo_user_id: 'it is the name that workflows know a resource by',
  password: 'passwords belong to users, and this one would be stored and audited as it is sent',
}

export function buildResourceType(spec: ResourceTypeSpec, context: BuildContext): void {
  const { state, issues, placed, document } = context
  const { name, endpoint, target, workflow } = spec
  checkNames(spec, issues)
  const schema = readSchemas(spec, issues)
  const nameAttribute = schema && readNameAttribute(spec.nameAttribute, schema, issues)
  context.refer('target', target, ['spec', 'target'])
  context.refer('workflow', workflow, ['spec', 'workflow'])
  const deleteWorkflow = context.optional('workflow', spec.deleteWorkflow, ['spec', 'deleteWorkflow'])
  if (state.draft.targets.get(target)?.config.target.lookups === false) {
    issues.error(
      ['spec', 'target'],
      `target "${target}" has no look-ups, so ${name} resources could not be read from it`,
    )
  }
  const earlier = state.draft.resourceTargets.get(target)
  if (earlier !== undefined) {
    const place = earlier.at(['spec', 'target'])
    const message = `target "${target}" already stores another resource type (${place}), which would show these resources too; give each type a target with a "directory" of its own`
    issues.error(['spec', 'target'], message)
    state.draft.rivals.push({ first: earlier, later: document })
  }
  state.draft.resourceTargets.set(target, document)
  if (schema === undefined || nameAttribute === undefined) return
  const path = `/${endpoint.slice(1)}` as const
  const config = { schema, endpoint: path, nameAttribute, target, workflow, deleteWorkflow }
  state.draft.resourceTypes.set(placed.name, { config, document })
}

function checkNames({ name, endpoint }: ResourceTypeSpec, issues: Issues): void {
  if (!/^[A-Za-z][A-Za-z0-9_-]*$/.test(name)) {
    issues.error(['spec', 'name'], `"${name}" is not a resource type's name: a letter, then letters, digits, _ or -`)
  } else if (ownTypes.includes(name.toLowerCase())) {
    issues.error(['spec', 'name'], `"${name}" is a resource type of every gateway; choose another name`)
  }
  if (!/^\/[A-Za-z][A-Za-z0-9_-]*$/.test(endpoint)) {
    const text = `"${endpoint}" is not an endpoint: a slash and a letter, then letters, digits, _ or -, such as /Devices`
    issues.error(['spec', 'endpoint'], text)
  } else if (ownEndpoints.includes(endpoint.slice(1).toLowerCase())) {
    issues.error(['spec', 'endpoint'], `"${endpoint}" is an endpoint of every gateway; choose another one`)
  }
}

/** The schema of the type with its extensions; undefined if one of them has an error. */
function readSchemas(spec: ResourceTypeSpec, issues: Issues): ResourceSchema | undefined {
  const { name, schema: id, description = '', attributes, extensions = [] } = spec
  let isValid = true
  const reporter =
    (at: Path): ReportProblem =>
    (path, message) => {
      isValid = false
      // A document of SCIM calls it "id".
      issues.error(['spec', ...at, ...path.map((step) => (step === 'id' ? 'schema' : step))], message)
    }
  const documents = [
    { at: [], document: { id, name, description, attributes } },
    ...extensions.map(({ schema, ...rest }, i) => ({ at: ['extensions', i], document: { id: schema, ...rest } })),
  ]
  const taken = new Set<string>()
  const read = documents.flatMap(({ at, document }): Schema[] => {
    const report = reporter(at)
    const urn = document.id.toLowerCase()
    if (isStandard(urn)) report(['schema'], `"${document.id}" is a schema of SCIM itself; choose a URN of your own`)
    if (taken.has(urn)) report(['schema'], `"${document.id}" is there twice; letter case does not count`)
    taken.add(urn)
    const found = readSchema(document, report)
    for (const [i, attribute] of (found?.attributes ?? []).entries()) {
      checkAttribute(attribute, at.length === 0, (path, message) => report(['attributes', i, ...path], message))
    }
    return found === undefined ? [] : [found]
  })
  const [core] = read
  if (!isValid || core === undefined) return undefined
  // Only the names of the common attributes can be left to report, and those are in the schema of the type.
  const empty = new ResourceSchema({ ...core, attributes: [] })
  const whole = extendResourceSchema(empty, read, ([, ...path], message) => reporter([])(path, message))
  return isValid ? whole : undefined
}

const isStandard = (urn: string): boolean =>
  urn.startsWith(`${coreUrn}:`.toLowerCase()) ||
  urn.startsWith('urn:ietf:params:scim:api:') ||
  urn === enterpriseUserSchema.id.toLowerCase()

function checkAttribute(attribute: SchemaAttribute, isCore: boolean, report: ReportProblem): void {
  const { name, multiValued, subAttributes } = attribute
  const reserved = isCore ? reservedAttributes[name.toLowerCase()] : undefined
  if (reserved !== undefined) report(['name'], `"${name}" cannot be an attribute: ${reserved}`)
  const texts = ['string', 'reference', 'binary']
  const checkUnique = ({ type, uniqueness, mutability }: SchemaAttribute, path: Path, inList: boolean): void => {
    if (uniqueness === 'none' || mutability === 'readOnly') return
    const remedy = 'make it "none", or use an attribute of type string'
    if (!texts.includes(type)) report([...path, 'uniqueness'], `values of type ${type} cannot be unique: ${remedy}`)
    else if (inList) report([...path, 'uniqueness'], `parts of a list cannot be unique: ${remedy} of its own`)
  }
  checkUnique(attribute, [], false)
  for (const [i, sub] of subAttributes.entries()) checkUnique(sub, ['subAttributes', i], multiValued)
}

function readNameAttribute(name: string, schema: ResourceSchema, issues: Issues): string | undefined {
  const path = ['spec', 'nameAttribute']
  const { attributes } = schema.core
  const found = attributes.find((one) => one.name.toLowerCase() === name.toLowerCase())
  if (found === undefined) {
    const names = attributes.map((one) => one.name)
    issues.error(path, `the schema has no attribute "${name}"${suggestion(name, names)}`)
    return undefined
  }
  const missing = [
    ...(found.type === 'string' && !found.multiValued ? [] : ['a single string']),
    ...(found.required ? [] : ['required: true']),
    ...(found.uniqueness === 'none' ? ['uniqueness: server'] : []),
    ...(found.caseExact ? ['caseExact: false, since names differ in more than letter case'] : []),
    ...(found.mutability === 'readWrite' || found.mutability === 'immutable' ? [] : ['readWrite or immutable']),
    ...(found.returned === 'never' ? ['returned'] : []),
  ]
  if (missing.length === 0) return found.name
  issues.error(path, `"${found.name}" names a resource, so it must be ${missing.join(', and ')}`)
  return undefined
}
