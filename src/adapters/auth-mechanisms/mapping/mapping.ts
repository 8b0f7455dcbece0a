import { Attributes } from '#identity/attributes.ts'
import { toTexts, userIdName } from '#identity/mapping/mapped-value.ts'
import type { Subject } from '#identity/subject.ts'
import type { Awaitable } from '#kernel/awaitable.ts'
import type { Issues } from '#kernel/issues.ts'
import { type AuthMechanism, type AuthOutcome, defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import {
  type MappingRule,
  type PreparedMapping,
  prepareMapping,
  type SourceType,
  sourceTypes,
} from '#sdk/mapper/mapping.ts'
import { list } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'

const parameters = {
  map: list({
    about:
      "Either `target|type|source`, with the types of a target's mappings (`user`, `static`, `composite`, `custom`): the caller has these attributes and no others. Or `new=old`: an attribute gets another name, and the others stay. May repeat; all of one form.",
    required: true,
  }),
}

interface Renaming {
  readonly to: string
  readonly from: string
}

type Config = { readonly mapping: PreparedMapping } | { readonly renamings: readonly Renaming[] }

/** Changes the attributes of the user that earlier mechanisms established; name and login stay. */
export default defineAuthMechanism({
  className: 'auth.Mapping',
  aliases: ['com.tremolosecurity.proxy.auth.FullMappingAuthMech', 'com.tremolosecurity.proxy.auth.MappingAuthmech'],
  parameters,
  parse: (params, issues, context): Config => {
    const { map } = readParameters(parameters, params, issues, context)
    const isFull = map.map((entry) => entry.includes('|'))
    if (isFull.includes(true) && isFull.includes(false)) {
      issues.error(params.pathOf('map'), '"map": all entries must be of one form, target|type|source or new=old')
    }
    return isFull.includes(true)
      ? { mapping: readRules(map, params, issues, context) }
      : { renamings: readRenamings(map, params, issues) }
  },
  create: async (config, host): Promise<AuthMechanism> => {
    if ('renamings' in config) {
      const renew = (subject: Subject | undefined) => changed(subject, (from) => rename(from, config.renamings))
      return { begin: ({ subject }) => renew(subject), renew }
    }
    const mapping = await config.mapping.create(host)
    const renew = (subject: Subject | undefined) =>
      changed(subject, async ({ dn, uid, attributes }) => {
        const source = {
          userID: uid,
          groups: [],
          values: (name: string) => attributes.values(name),
          names: () => attributes.names(),
        }
        const mapped = await mapping.apply(source)
        const claims = attributes.names().filter((name) => attributes.isClaim(name))
        const ofClaims = new Set(mapping.dependents(dn.isClaimed ? [...claims, userIdName] : claims))
        const result = new Attributes()
        for (const [name, value] of mapped) {
          if (ofClaims.has(name)) result.setClaim(name, toTexts(value))
          else result.set(name, toTexts(value))
        }
        return result
      })
    return { begin: ({ subject }) => renew(subject), renew, close: async () => mapping.close?.() }
  },
})

async function changed(
  subject: Subject | undefined,
  change: (subject: Subject) => Awaitable<Attributes>,
): Promise<AuthOutcome> {
  if (subject === undefined)
    return {
      kind: 'rejected',
      reason:
        'no user is signed in yet, so no attributes can be mapped; put this mechanism after one that identifies the user',
    }
  const { level: _, chain: __, ...kept } = subject
  return { kind: 'authenticated', subject: { ...kept, attributes: await change(subject) } }
}

function rename({ attributes: before }: Subject, renamings: readonly Renaming[]): Attributes {
  const attributes = before.clone()
  for (const { to, from } of renamings) {
    const values = attributes.values(from)
    const isClaim = attributes.isClaim(from)
    attributes.set(from, [])
    if (isClaim) attributes.setClaim(to, values)
    else attributes.set(to, values)
  }
  return attributes
}

function readRules(map: readonly string[], params: Params, issues: Issues, context: ParseContext): PreparedMapping {
  const rules = map.flatMap((entry, i): MappingRule[] => {
    const path = params.pathOf('map', i)
    const [attribute = '', type = '', ...rest] = entry.split('|')
    const sourceType: SourceType | undefined = sourceTypes.find((known) => known === type)
    if (attribute === '' || sourceType === undefined || rest.length === 0) {
      issues.error(path, `"map": must be target|type|source with a type of ${sourceTypes.join(', ')}, not "${entry}"`)
      return []
    }
    return [{ attribute, sourceType, source: rest.join('|'), path }]
  })
  return prepareMapping(rules, issues, context)
}

function readRenamings(map: readonly string[], params: Params, issues: Issues): Renaming[] {
  return map.flatMap((entry, i) => {
    const [to = '', from = '', ...rest] = entry.split('=')
    if (to !== '' && from !== '' && rest.length === 0) return [{ to, from }]
    issues.error(params.pathOf('map', i), `"map": must be new=old, not "${entry}"`)
    return []
  })
}
