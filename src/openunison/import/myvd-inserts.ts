import { Document } from 'yaml'
import { Dn } from '#identity/dn.ts'
import { yamlText } from './yaml-text.ts'

/** The name of the ConfigMap that has the virtual directory of OpenUnison's charts, and its key. */
export const myvdName = 'myvd'
export const myvdKey = 'myvd.conf'

/** A Target, as far as parts of the directory refer to it. */
interface NamedTarget {
  readonly name: string
  readonly className: string
}

interface InsertObject {
  readonly name: string
  readonly text: string
}

interface Part {
  readonly name: string
  readonly suffix: string
  /** The inserts of its chain. */
  readonly chain: readonly { readonly className: string; readonly config: ReadonlyMap<string, string> }[]
}

interface InsertPlan {
  readonly suffix: string
  readonly className: string
  readonly params: Readonly<Record<string, string | readonly string[]>>
  readonly mapping?: Readonly<Record<string, string>>
}

const longestText = 1 << 20
const mostParts = 200
const mostInserts = 50

/** The entry of a tree that has no users. */
const emptyClasses = /\.inserts\.(?:RootDSE|RootObject)$/
const ldapClasses = /\.(?:ADLdapInsert|LDAPInterceptor)$/
const userObjects = 'com.tremolosecurity.provisioning.providers.K8sCrdUserProvider'

/** DirectoryInsert objects for the parts of MyVD's configuration, and what could not be converted. */
export function myvdInserts(
  text: string,
  targets: readonly NamedTarget[],
): { readonly objects: readonly InsertObject[]; readonly problems: readonly string[] } {
  if (text.length > longestText) return { objects: [], problems: [`${myvdKey}: is larger than ${longestText} bytes`] }
  const objects: InsertObject[] = []
  const problems: string[] = []
  const parts = readParts(text)
  const groups = parts.filter(({ chain }) => has(chain, /\.DBGroups$/))
  for (const part of parts) {
    if (part.chain.every(({ className }) => emptyClasses.test(className)) || groups.includes(part)) continue
    const plan = planOf(part, targets, groups)
    if (plan !== undefined) objects.push({ name: objectName(part.name), text: written(objectName(part.name), plan) })
    else {
      const classes = part.chain.map(({ className }) => className).join(', ')
      problems.push(`${myvdKey}: "${part.suffix}" (${classes}): write a DirectoryInsert for it`)
    }
  }
  return { objects, problems }
}

function planOf({ suffix, chain }: Part, targets: readonly NamedTarget[], groups: readonly Part[]) {
  const ldap = chain.find(({ className }) => ldapClasses.test(className))
  const mapping = mappingOf(chain)
  if (ldap !== undefined) return ldapPlan(suffix, ldap.config, mapping, namesOf(chain))
  const joined = chain.find(({ className }) => className.endsWith('.AddGroupsFromProvisioningTarget'))
  if (joined !== undefined) {
    const target = joined.config.get('targetName') ?? ''
    const names = joined.config.get('attributeName') ?? ''
    if (!targets.some(({ name }) => name === target)) return undefined
    const plan = targetPlan(suffix, target, mapping, groups)
    return names === '' ? plan : { ...plan, params: { ...plan.params, groupsAttribute: names } }
  }
  if (!has(chain, /\.K8sCrdInsert$/)) return undefined
  const [only, another] = targets.filter(({ className }) => className === userObjects)
  return only === undefined || another !== undefined ? undefined : targetPlan(suffix, only.name, mapping, groups)
}

/** The attributes whose names an insert moves to its suffix. The rest of the chain may call them something else. */
function namesOf(chain: Part['chain']): readonly string[] {
  const names = chain.flatMap(({ className, config }, i) => {
    if (!className.endsWith('.DNAttributeMapper')) return []
    const inner = Object.entries(mappingOf(chain.slice(i + 1)))
    return listOf(config.get('dnAttribs')).map((name) => ownName(inner, name) ?? name)
  })
  return Array.from(new Map(names.map((name) => [name.toLowerCase(), name])).values())
}

function ldapPlan(
  suffix: string,
  config: ReadonlyMap<string, string>,
  mapping: Record<string, string>,
  names: readonly string[],
): InsertPlan | undefined {
  const value = (name: string): string => config.get(name) ?? ''
  if (value('host') === '' || value('useSrvDNS') === 'true') return undefined
  // Any other text, such as a value that is known later, could mean an encrypted connection.
  if (!/^(?:ldaps?)?$/i.test(value('type'))) return undefined
  const isEncrypted = /^ldaps$/i.test(value('type'))
  const params = {
    host: value('host'),
    port: value('port'),
    ...(isEncrypted ? { useSSL: 'true' } : {}),
    searchBase: value('remoteBase'),
    adminDN: value('proxyDN'),
    adminPasswd: value('proxyPass'),
  }
  const given = Object.fromEntries(Object.entries(params).filter(([, text]) => text !== ''))
  const dnAttribs = names.length === 0 ? ['none'] : names
  return { suffix, className: 'directory.Ldap', params: { ...given, dnAttribs }, mapping }
}

/** Groups that are next to the users become one insert with them. */
function targetPlan(
  suffix: string,
  target: string,
  mapping: Record<string, string>,
  groups: readonly Part[],
): InsertPlan {
  // The login has its own parameter.
  const others = Object.fromEntries(Object.entries(mapping).filter(([name]) => name.toLowerCase() !== 'uid'))
  const people = parsed(suffix)
  const beside = groups.map((part) => parsed(part.suffix)).find((dn) => dn?.parent?.equals(people?.parent ?? dn))
  if (people?.parent === undefined || beside === undefined) {
    return { suffix, className: 'directory.Target', params: { target }, mapping: others }
  }
  const params = { target, people: leaf(people), groups: leaf(beside) }
  return { suffix: people.parent.toString(), className: 'directory.Target', params, mapping: others }
}

const leaf = (dn: Dn): string => new Dn(dn.rdns.slice(0, 1)).toString()

function parsed(text: string): Dn | undefined {
  try {
    return Dn.parse(text)
  } catch {
    return undefined
  }
}

/** Names in the directory, and those of the system: inserts of a chain rename one after the other. */
function mappingOf(chain: Part['chain']): Record<string, string> {
  const steps = chain.flatMap(({ className, config }) =>
    /\.(?:AttributeMapper|JdbcInsert)$/.test(className) ? [readPairs(config.get('mapping') ?? '')] : [],
  )
  const names = steps.reduce((outer, inner) => {
    const renamed = outer.map(([name, own]): [string, string] => [name, ownName(inner, own) ?? own])
    const taken = new Set(outer.map(([, own]) => own.toLowerCase()))
    return [...renamed, ...inner.filter(([name]) => !taken.has(name.toLowerCase()))]
  }, [])
  return Object.fromEntries(names.filter(([name, own]) => name.toLowerCase() !== own.toLowerCase()))
}

const readPairs = (text: string): [string, string][] =>
  text.split(',').flatMap((pair): [string, string][] => {
    const [name = '', own = ''] = pair.split('=').map((word) => word.trim())
    return name === '' || own === '' ? [] : [[name, own]]
  })

const ownName = (pairs: readonly [string, string][], name: string): string | undefined =>
  pairs.find(([one]) => one.toLowerCase() === name.toLowerCase())?.[1]

const has = (chain: Part['chain'], className: RegExp): boolean => chain.some((one) => className.test(one.className))

const listOf = (text = ''): string[] =>
  text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')

/** `server.nameSpaces` names the parts, `server.NAME.chain` the inserts of each. */
function readParts(text: string): Part[] {
  const values = new Map<string, string>()
  for (const line of text.split('\n')) {
    const equals = line.indexOf('=')
    if (!line.trim().startsWith('#') && equals > 0)
      values.set(line.slice(0, equals).trim(), line.slice(equals + 1).trim())
  }
  const list = (key: string): string[] => listOf(values.get(key))
  return list('server.nameSpaces')
    .slice(0, mostParts)
    .filter((name) => values.get(`server.${name}.enabled`) !== 'false')
    .map((name) => ({
      name,
      suffix: values.get(`server.${name}.nameSpace`) ?? '',
      chain: list(`server.${name}.chain`)
        .slice(0, mostInserts)
        .map((insert) => {
          const start = `server.${name}.${insert}.config.`
          const own = Array.from(values).filter(([key]) => key.startsWith(start))
          return {
            className: values.get(`server.${name}.${insert}.className`) ?? '',
            config: new Map(own.map(([key, value]) => [key.slice(start.length), value])),
          }
        }),
    }))
}

const objectName = (part: string): string => part.toLowerCase().replaceAll(/[^a-z0-9-]/g, '-')

function written(name: string, { suffix, className, params, mapping = {} }: InsertPlan): string {
  const spec = {
    className,
    suffix,
    params: Object.entries(params).flatMap(([name, value]) => [value].flat().map((one) => ({ name, value: one }))),
    ...(Object.keys(mapping).length === 0 ? {} : { mapping }),
  }
  const object = { apiVersion: 'openunison.tremolo.io/v1', kind: 'DirectoryInsert', metadata: { name }, spec }
  const document = new Document(object)
  document.commentBefore = ` From the ConfigMap ${myvdName}, which has the virtual directory of OpenUnison.`
  return yamlText(document)
}
