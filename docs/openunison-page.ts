import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { catalog } from '#catalog/catalog.ts'
import type { LocatedIssue } from '#config/context/located-issue.ts'
import { buildConfiguration } from '#config/load/load.ts'
import type { Named, Registry } from '#kernel/registry.ts'
import {
  insteadOf,
  type OpenUnisonClass,
  openUnisonClasses,
  openUnisonPrefix,
  outsideAreas,
} from '#openunison/class-list.ts'

const statuses = ['served', 'built in', 'accepted', 'set aside'] as const
type Status = (typeof statuses)[number]

interface ClassRow {
  readonly name: string
  /** Undefined for a name that no page or chart of OpenUnison has. */
  readonly uses: number | undefined
  readonly isOutside: boolean
  readonly status: Status
  /** Where it is described, or what to use. */
  readonly remark: string
}

/** The slots of the catalog, with the folders of their pages in docs/reference. */
const registries: readonly (readonly [folder: string, registry: Registry<Named>])[] = [
  ['auth-mechanisms', catalog.authMechanisms],
  ['authorizations', catalog.authorizations],
  ['custom-tasks', catalog.customTasks],
  ['dynamic-workflows', catalog.dynamicWorkflows],
  ['filters', catalog.filters],
  ['jobs', catalog.jobs],
  ['mappers', catalog.mappers],
  ['notifiers', catalog.notifiers],
  ['targets', catalog.targets],
  ['value-sources', catalog.valueSources],
]

const application = (url: string): string => `apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: probe }
spec:
  urls:
    - { hosts: ['*'], azRules: [{ scope: dn, constraint: o=Tremolo }], ${url} }
`
const provider = (settings: string): string => application(`uri: /auth/idp/probe, idp: { ${settings} }`)
const ofProvider = (params: string, mappings = ''): string =>
  provider(`className: idp.OpenIDConnect, params: { ${params} }${mappings}`)
/** What the class that adds groups to claims needs beside its name. */
const clusterClaim =
  ', mappings: { map: [{ targetAttributeName: cluster, sourceType: static, targetAttributeSource: blue }] }'
const ofFilter = (filter: string, params: string): string =>
  application(`uri: /probe, filterChain: [{ className: ${filter}, params: { ${params} } }]`)
const ofMechanism = (className: string, params: string): string => `apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: probe }
spec: { className: ${className}, uri: /auth/probe }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: { name: probe }
spec: { level: 20, authMechs: [{ name: probe, required: required, params: { ${params} } }] }
`

const tokenService = `sts:
  endpoints:
    - { name: probe, path: /probe/sts, audience: probe, clusters: [k8s], issuer: { host: tokens.example.com }, azRules: [{ scope: dn, constraint: o=Tremolo }] }
`

/** What the loaders of tokens need beside their class. */
const loaderParameters = 'attributes: mail, attributeName: mail, issuer: https://tokens.example.com, audience: probe'

/** What the classes that choose the workflow of a registration need. */
const handlerSettings =
  'callWorkflowInit: [workflowName=probe, targetName=k8s, projectAttributeName=name, "javaScript=function createTremoloUser() {} function setWorkflowParameters() {}"]'

const emptyWorkflow = `apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: probe }
spec: { tasks: [] }
`

const resultGroup = (result: string): string => `apiVersion: openunison.tremolo.io/v1
kind: ResultGroup
metadata: { name: probe }
spec: [${result}]
`

interface Part {
  /** Where objects name the class. */
  readonly field: string
  readonly page: string
  object(className: string): string
  /** The same without the class, or with one that is served. */
  readonly without: string
}

/** The slots that no registry has. A class is served if naming it causes no error, and accepted if that warns. */
const parts: Readonly<Record<string, Part>> = {
  'identity provider': {
    field: 'idp.className',
    page: 'guides/own-issuer.md',
    object: (name) => provider(`className: ${name}, params: {}`),
    without: ofProvider(''),
  },
  'session store of an identity provider': {
    field: 'sessionStoreClassName',
    page: 'guides/own-issuer.md',
    object: (name) => ofProvider(`sessionStoreClassName: ${name}`),
    without: ofProvider(''),
  },
  'source of trusts': {
    field: 'trustConfigurationClassName',
    page: 'reference/kinds/Trust.md',
    object: (name) => ofProvider(`trustConfigurationClassName: ${name}`),
    without: ofProvider(''),
  },
  'source of claims': {
    field: 'updateClaimsClassName',
    page: 'guides/own-issuer.md',
    object: (name) => ofProvider(`updateClaimsClassName: ${name}`, clusterClaim),
    without: ofProvider('', clusterClaim),
  },
  'user lookup': {
    field: 'userLookupClassName',
    page: 'reference/auth-mechanisms/auth.OpenIDConnect.md',
    object: (name) => ofMechanism('auth.OpenIDConnect', `userLookupClassName: ${name}`),
    without: ofMechanism('auth.OpenIDConnect', ''),
  },
  'token loader': {
    field: 'tokenClassName',
    page: 'reference/filters/filters.TokenApi.md',
    object: (name) => ofFilter('filters.TokenApi', `tokenClassName: ${name}, ${loaderParameters}`),
    without: ofFilter('filters.TokenApi', `tokenClassName: KubectlTokenLoader, ${loaderParameters}`),
  },
  'registration handler': {
    field: 'callWorkflowClassName',
    page: 'reference/filters/filters.Register.md',
    object: (name) =>
      `${ofFilter('filters.Register', `useCallWorkflowClass: "true", callWorkflowClassName: ${name}, ${handlerSettings}`)}---\n${emptyWorkflow}`,
    without: ofFilter('filters.Register', 'workflowName: probe'),
  },
  'source of portal groups': {
    field: 'loadPortalGroupsClassName',
    page: 'reference/filters/filters.Main.md',
    object: (name) => ofFilter('filters.Main', `loadPortalGroupsClassName: ${name}`),
    without: ofFilter('filters.Main', ''),
  },
  'custom result': {
    field: 'value',
    page: 'reference/kinds/ResultGroup.md',
    object: (name) => resultGroup(`{ resultType: header, source: custom, value: Authorization=${name} }`),
    without: resultGroup(''),
  },
  'message listener': {
    field: 'spec.className',
    page: 'migration-from-openunison.md',
    object: (name) => `apiVersion: openunison.tremolo.io/v1
kind: MessageListener
metadata: { name: probe }
spec: { className: ${name}, params: [] }
`,
    without: '',
  },
  'certificate check': {
    field: 'crl.*.type',
    page: 'guides/logging-in.md',
    object: (name) => ofMechanism(`${openUnisonPrefix}proxy.auth.CertAuth`, `crl.list.type: ${name}`),
    without: '',
  },
}

/** Objects whose class may be known without having an effect, by slot. */
const registered: Readonly<Record<string, (className: string) => string>> = {
  [catalog.authMechanisms.slot]: (name) => ofMechanism(name, ''),
  [catalog.customTasks.slot]: (name) => `apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: probe }
spec: { tasks: [{ taskType: customTask, className: ${name}, params: {} }] }
`,
  [catalog.filters.slot]: (name) => ofFilter(name, ''),
  [catalog.jobs.slot]: (name) => `apiVersion: openunison.tremolo.io/v1
kind: OUJob
metadata: { name: probe }
spec:
  className: ${name}
  group: probe
  params: []
  cronSchedule: { seconds: '0', minutes: '0', hours: '*', dayOfMonth: '*', month: '*', dayOfWeek: '?', year: '*' }
`,
}
const hasNoEffect = /no effect|not needed|not used/

interface Verdict {
  readonly status: Status
  /** Why the class has no effect. */
  readonly reason?: string
}

/** What the loader says about an object that names the class, and not about one that doesn't. */
function causedBy(name: string, object: (className: string) => string, without = ''): readonly LocatedIssue[] {
  const issuesOf = (text: string): readonly LocatedIssue[] => {
    const files = [
      { name: 'probe.yaml', text },
      { name: 'values.yaml', text: tokenService },
    ]
    const sources = { files, keys: new Map<string, string>(), problems: [] }
    return buildConfiguration(sources, { folder: '/nowhere', catalog, environment: {}, strictSecrets: false }).issues
  }
  const usual = new Set(issuesOf(without).map(({ message }) => message))
  return issuesOf(object(`${openUnisonPrefix}${name}`)).filter(({ message }) => !usual.has(message))
}

function judgePart({ object, without }: Part, name: string): Verdict {
  const caused = causedBy(name, object, without)
  if (caused.some(({ level }) => level === 'error')) return { status: 'set aside' }
  const [warning] = caused
  return warning === undefined ? { status: 'served' } : { status: 'accepted', reason: warning.message }
}

/** A module, or a class that the loader leaves out with a warning. */
function judgeRegistered(registry: Registry<Named>, { name, area }: Pick<OpenUnisonClass, 'name' | 'area'>): Verdict {
  const object = registered[registry.slot]
  const caused = object === undefined ? [] : causedBy(name, object)
  const warning = caused.find(({ level, message }) => level === 'warning' && hasNoEffect.test(message))
  const isError = caused.some(({ level, path }) => level === 'error' && path.endsWith('className'))
  if (warning !== undefined && !isError) return { status: 'accepted', reason: warning.message }
  if (registry.find(`${openUnisonPrefix}${name}`) === undefined) return { status: 'set aside' }
  // What is outside this product is never done here, even where a module lets its objects load.
  return { status: area === undefined ? 'served' : 'accepted' }
}

function catalogRows([folder, registry]: (typeof registries)[number]): ClassRow[] {
  const linkTo = (className: string): string => `[${className}](reference/${folder}/${className}.md)`
  const documented = openUnisonClasses[registry.slot] ?? []
  const rows = documented.map((known): ClassRow => {
    const { status, reason } = judgeRegistered(registry, known)
    const module = registry.find(`${openUnisonPrefix}${known.name}`)
    const link = module === undefined ? '' : linkTo(module.className)
    if (status === 'set aside') return row(known, status, insteadOf(known) ?? '')
    return row(known, status, [reason, link].filter(Boolean).join(': '))
  })
  const names = new Set(documented.map(({ name }) => name))
  const others = registry.all().flatMap(({ className, aliases }) =>
    aliases
      .filter((alias) => alias.startsWith(openUnisonPrefix))
      .map((alias) => alias.slice(openUnisonPrefix.length))
      .filter((name) => !names.has(name))
      .map((name): ClassRow => {
        const { status } = judgeRegistered(registry, { name })
        return { name, uses: undefined, isOutside: false, status, remark: linkTo(className) }
      }),
  )
  return [...rows, ...others]
}

const row = ({ name, uses, area, isBuiltIn }: OpenUnisonClass, status: Status, remark: string): ClassRow => ({
  name,
  uses,
  isOutside: area !== undefined,
  status: status === 'accepted' && isBuiltIn === true ? 'built in' : status,
  remark,
})

/** Every class name by slot, with what becomes of it. */
export function openUnisonRows(): ReadonlyMap<string, readonly ClassRow[]> {
  const ofParts = Object.entries(parts).map(([slot, part]): [string, ClassRow[]] => [
    slot,
    (openUnisonClasses[slot] ?? []).map((known) => {
      const { status, reason = '' } = judgePart(part, known.name)
      return row(known, status, status === 'set aside' ? (insteadOf(known) ?? '') : reason)
    }),
  ])
  return new Map([...registries.map((entry): [string, ClassRow[]] => [entry[1].slot, catalogRows(entry)]), ...ofParts])
}

const sum = (rows: readonly ClassRow[]): number => rows.reduce((total, { uses = 0 }) => total + uses, 0)
const percent = (part: number, whole: number): string => `${Math.floor((part / whole) * 100)} %`

interface Coverage {
  readonly overall: string
  readonly inside: string
}

/** The share of documented uses that are served or built in. */
function openUnisonCoverage(rows: ReadonlyMap<string, readonly ClassRow[]>): Coverage {
  const all = Array.from(rows.values()).flat()
  const inside = all.filter(({ isOutside }) => !isOutside)
  const share = (some: readonly ClassRow[]): string =>
    percent(sum(some.filter(({ status }) => status === 'served' || status === 'built in')), sum(some))
  return { overall: share(all), inside: share(inside) }
}

/** One sentence for the pages that state the coverage. */
export function coverageSentence(link: string): string {
  const { overall, inside } = openUnisonCoverage(openUnisonRows())
  return `Of the class names in OpenUnison's charts and documentation, ${overall} of the uses are served or built in; ${inside} without the reverse proxy, SAML, Git and GitLab. [The table](${link}) has every name.`
}

type Table = (header: readonly string[], rows: readonly (readonly string[])[]) => string

export function openUnisonPage(table: Table): string {
  const rows = openUnisonRows()
  const all = Array.from(rows.values())
    .flat()
    .filter(({ uses }) => uses !== undefined)
  const inside = all.filter(({ isOutside }) => !isOutside)
  const line = (title: string, some: readonly ClassRow[]): string[] => {
    const count = (status: Status): string => {
      const found = some.filter((one) => one.status === status)
      return `${found.length} (${sum(found)})`
    }
    return [title, `${some.length} (${sum(some)})`, ...statuses.map(count)]
  }
  const header = ['', 'Classes (uses)', 'Served', 'Built in', 'Accepted', 'Set aside']
  const numbers = table(header, [line('All', all), line('Without the reverse proxy, SAML, Git and GitLab', inside)])
  const bySlot = table(
    ['Slot', ...header.slice(1)],
    Array.from(rows, ([slot, some]) =>
      line(
        slot,
        some.filter(({ uses }) => uses !== undefined),
      ),
    ),
  )
  const sections = Array.from(rows, ([slot, some]) => {
    const part = parts[slot]
    const where =
      part === undefined ? '' : `Objects name it in \`${part.field}\`: see [${part.page}](${part.page}).\n\n`
    const cells = some.map(({ name, uses, status, remark }) => [`\`${name}\``, String(uses ?? '–'), status, remark])
    return `## ${slot.charAt(0).toUpperCase()}${slot.slice(1)}\n\n${where}${table(['Class', 'Uses', 'Result', 'Module, or what to use'], cells)}\n`
  })
  const areas = table(['Area', 'In its place'], Object.entries(outsideAreas))
  return `${introduction(drivenTable(table))}\n${coverageText(rows)}\n\n${numbers}\n\n${bySlot}\n\n${outside}\n\n${areas}\n\n${sections.join('\n')}`
}

const coverageText = (rows: ReadonlyMap<string, readonly ClassRow[]>): string => {
  const { overall, inside } = openUnisonCoverage(rows)
  return `**${overall}** of the uses are served or built in; **${inside}** without the reverse proxy, SAML, Git and GitLab, which are not part of this product.`
}

type DrivenRow = Readonly<Record<(typeof drivenColumns)[number], string>>
const drivenColumns = ['objects', 'login', 'portal', 'kubectl', 'namespaces', 'dashboards'] as const

/** Of the file that the tests write which drive the charts. */
function drivenTable(table: Table): string {
  const text = readFileSync(join(import.meta.dirname, '../test/openunison-charts.json'), 'utf8')
  const rows = Object.entries(JSON.parse(text) as Record<string, DrivenRow>)
  return table(
    ['Charts and login', 'Objects served', 'Login', 'Portal', 'kubectl', 'Namespaces', 'Dashboards'],
    rows.map(([name, row]) => [name, ...drivenColumns.map((column) => row[column])]),
  )
}

const introduction = (driven: string): string => `# OpenUnison's charts and class names

What was done with objects in the form of OpenUnison's charts, on a real API server, with a real LDAP server, PostgreSQL and identity provider, and a stand-in for GitHub. The test that did it
checks its row. The objects are our own, one for each form that the charts have; run [\`gatehouse import\`](migration-from-openunison.md) for yours.

${driven}

The one object that isn't served beside a login that works is the mechanism of SAML. "tokens, refreshed" means that the token page issued tokens and the issuer refreshed them, and "authorized an hour
later" that the API server then also accepted the refreshed one. – means that these charts don't have it.

## Class names

Every class name that the objects in OpenUnison's Helm charts and documentation pages have, without \`com.tremolosecurity.\`, which all of them begin with.
"Uses" counts how often those objects name it; 0 means that only its older manual does, and – that neither does. "Served" is not written by hand:
\`npm run reference\` makes this page from the program.

| Result | Meaning |
|---|---|
| served | A module of Gatehouse has this name. Its page lists the parameters. |
| built in | The gateway does this work itself, with or without the class; \`gatehouse check\` or its page says how. |
| accepted | It may stay in the configuration, and has no effect; \`gatehouse check\` or its page says why. |
| set aside | The object that names it is not served; \`gatehouse check\` says what to use. |

A served class does not mean that every parameter has the same effect: [migrating from OpenUnison](migration-from-openunison.md) has the differences.
`

const outside = `## Outside this product

These classes are set aside on purpose:`
