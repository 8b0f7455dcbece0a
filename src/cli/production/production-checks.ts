import type { Configuration } from '#config/configuration/configuration.ts'
import { withoutSecrets } from '#kernel/secret-values.ts'
import type { PreparedTask } from '#sdk/workflow/workflow-task.ts'
import type { ConfiguredFilter, Finding, ProductionCheck, ProductionSetup } from './production-check.ts'
import {
  certificateNote,
  closedModes,
  findBadCertificates,
  findOwnCertificate,
  findPlainDatabase,
  findPlainListener,
  findPublicMetrics,
  findUnsafeKeys,
  findWrongUrl,
  isBesideDatabase,
} from './serving-checks.ts'

const fail = (at: string, message: string, remedy?: string): Finding => ({ level: 'fail', at, message, remedy })
const warn = (at: string, message: string, remedy?: string): Finding => ({ level: 'warn', at, message, remedy })
const isOn = (text: string | undefined): boolean => text?.toLowerCase() === 'true'

function findDemoPasswords({ objects }: ProductionSetup): Finding[] {
  return objects
    .inserts()
    .filter(({ params }) => params.values('demoPasswords').length > 0)
    .map(({ at }) => fail(at('demoPasswords'), 'everyone who has the configuration knows these passwords'))
}

function findDevelopmentIssuers({ objects }: ProductionSetup): Finding[] {
  const served = objects
    .filters()
    .filter(({ className }) => className === 'filters.DevelopmentIssuer')
    .map(({ at }) => fail(at(), 'anyone with the data folder can sign tokens of the development issuer'))
  const trusted = objects
    .mechanisms()
    .filter(({ params }) => params.values('issuer').some((issuer) => issuer.toLowerCase().startsWith('http:')))
    .map(({ at }) =>
      fail(
        at('issuer'),
        'the chain trusts an issuer over plain HTTP, as only development issuers are reached',
        'Name an issuer that is reached by https.',
      ),
    )
  return [...served, ...trusted]
}

function findOpenCookies({ configuration, objects }: ProductionSetup): Finding[] {
  return configuration.applications.flatMap(({ name, cookies }) => {
    if (cookies === undefined) return []
    const at = (key: string): string => objects.placeOf('Application', name, ['spec', 'cookieConfig', key])
    const cookie = `the cookie "${cookies.name}"`
    return [
      ...(cookies.secure ? [] : [fail(at('secure'), `${cookie} is also sent without TLS`)]),
      ...(cookies.httpOnly ? [] : [fail(at('httpOnly'), `scripts can read ${cookie}`)]),
      ...(cookies.sameSite === 'None' ? [fail(at('sameSite'), `other sites can send ${cookie}`)] : []),
      ...(cookies.domain === undefined ? [] : [warn(at('domain'), `every host of ${cookies.domain} gets ${cookie}`)]),
    ]
  })
}

const secondFactors = new Set(['auth.Totp', 'auth.Passkey'])
/** Another system authenticates the caller, and decides how. */
const outside = new Set(['auth.OpenIDConnect', 'auth.OAuth2JWT', 'auth.OAuth2K8sServiceAccount', 'auth.Plugin'])
type Strength = 'second factor' | 'left to others' | 'none'

/** Filters for administration. */
const administers = ({ className, params }: ConfiguredFilter): boolean =>
  (className === 'filters.Main' && params.values('administrators').length > 0) || className === 'filters.WorkflowAdmin'

type ChainSetup = Pick<ProductionSetup, 'configuration' | 'objects'>

function findWeakAdministrators(setup: ProductionSetup): Finding[] {
  const { objects } = setup
  return objects.filters().flatMap((filter) => {
    if (!administers(filter)) return []
    const at = filter.at('administrators')
    const { chain } = filter
    if (chain === undefined)
      return [fail(at, 'administrators need no login here', 'Add an "authChain" with auth.Totp or auth.Passkey.')]
    const strength = strengthOf(chain, setup)
    if (strength === 'none') return [fail(at, `the chain "${chain}" lets administrators in without a second factor`)]
    const weaker = chainsThatReplace(chain, setup).map((other) =>
      fail(
        at,
        `a session of the chain "${other}" has no second factor, and its level is enough here`,
        `Give the chain "${other}" a lower level, or a second factor.`,
      ),
    )
    if (strength === 'second factor') return weaker
    const message = `the chain "${chain}" leaves it to another issuer whether administrators need a second factor`
    const remedy =
      'Make sure that the issuer requires one, or add auth.Totp or auth.Passkey as a required link of the chain.'
    return [warn(at, message, remedy), ...weaker]
  })
}

/** A session is accepted if its level is high enough, so a weaker chain must have a lower one. */
function chainsThatReplace(name: string, setup: ChainSetup): string[] {
  const { configuration } = setup
  const level = configuration.chains.get(name)?.level ?? 0
  return [...configuration.chains.values()]
    .filter((chain) => chain.name !== name && chain.level >= level)
    .filter(({ mechanisms }) => mechanisms.some(({ mechanism }) => mechanism.interactive))
    .filter((chain) => strengthOf(chain.name, setup) === 'none')
    .map((chain) => chain.name)
}

/** A chain is as strong as the strongest link that every caller must pass; a choice is as weak as its weakest chain. */
function strengthOf(name: string, setup: ChainSetup, within: readonly string[] = []): Strength {
  const { configuration, objects } = setup
  const chain = configuration.chains.get(name)
  if (chain === undefined || within.includes(name)) return 'none'
  const links = objects.mechanisms().filter((link) => link.chain === name)
  /** Users without a second factor pass. */
  const isPassed = (mechanism: string): boolean =>
    links.some((link) => link.name === mechanism && isOn(link.params.values('passWithoutFactor')[0]))
  const strengths = chain.mechanisms.flatMap(({ name: link, required, mechanism }): Strength[] => {
    // An optional link counts only if it is the only one.
    if (!required && chain.mechanisms.length > 1) return []
    if (secondFactors.has(mechanism.className)) return isPassed(link) ? [] : ['second factor']
    if (outside.has(mechanism.className)) return ['left to others']
    const chosen = mechanism.includes.map((included) => strengthOf(included, setup, [...within, name]))
    return chosen.length === 0 ? [] : [weakest(chosen)]
  })
  return order.find((strength) => strengths.includes(strength)) ?? 'none'
}

const order: readonly Strength[] = ['second factor', 'left to others', 'none']
const weakest = (strengths: readonly Strength[]): Strength =>
  [...order].reverse().find((strength) => strengths.includes(strength)) ?? 'none'

function findUnverifiedMail({ objects }: ProductionSetup): Finding[] {
  return objects
    .mechanisms()
    .filter(({ params }) => isOn(params.values('acceptUnverifiedMail')[0]))
    .map(({ at }) =>
      fail(
        at('acceptUnverifiedMail'),
        'anyone who can choose a mail address at the issuer can log in as its owner here',
      ),
    )
}

function findOpenRegistration({ objects, configuration }: ProductionSetup): Finding[] {
  return objects.filters().flatMap(({ className, params, chain, at }) => {
    if (className !== 'filters.Register' || chain !== undefined) return []
    const [check = ''] = params.values('humanCheck')
    const asksHumans = check === '' ? isOn(params.values('requireReCaptcha')[0]) : check !== 'none'
    if (asksHumans || isOn(params.values('requireInvitation')[0])) return []
    const [workflow = ''] = params.values('workflowName')
    const walk = new ApprovalWalk(configuration.workflows)
    walk.run(workflow)
    if (walk.asks && !walk.writesUnapproved) return []
    const lacks = walk.asks ? 'asks no approver before it provisions' : 'asks no approver'
    return [fail(at('workflowName'), `anyone, and any program, gets an account: the workflow "${workflow}" ${lacks}`)]
  })
}

/** Follows all paths of a workflow, and finds out whether one of them changes a target before an approval. */
class ApprovalWalk {
  asks = false
  writesUnapproved = false
  readonly #workflows: Configuration['workflows']
  readonly #running = new Set<string>()

  constructor(workflows: Configuration['workflows']) {
    this.#workflows = workflows
  }

  /** Whether every path through it to its end has an approval. */
  run(name: string, approved = false): boolean {
    const workflow = this.#workflows.get(name)
    if (workflow === undefined || this.#running.has(name)) return approved
    this.#running.add(name)
    const after = this.#list(workflow.tasks, approved)
    this.#running.delete(name)
    return after
  }

  #list(tasks: readonly PreparedTask[], approved: boolean): boolean {
    return tasks.reduce((before, task) => this.#task(task, before), approved)
  }

  #task(task: PreparedTask, approved: boolean): boolean {
    const { taskType, flow, onSuccess, onFailure, calls } = task
    if (taskType === 'approval') {
      this.asks = true
      this.#list(onSuccess, true)
      // Only these follow a denial.
      this.#list(onFailure, approved)
      return true
    }
    // A separate run does not wait for an approval of this one.
    const writes = flow.provisions !== undefined || taskType === 'delete' || task.name === 'tasks.AsyncCallWorkflow'
    if (writes && !approved) this.writesUnapproved = true
    // A mapping always continues with onSuccess; other tasks choose between two branches, one of which may be empty.
    const ways = taskType === 'mapping' ? [onSuccess] : [onSuccess, onFailure]
    const after = ways.map((way) => this.#list(way, approved)).every(Boolean)
    return calls.reduce((before, name) => this.run(name, before), after)
  }
}

function findOpenCallWorkflow({ objects }: ProductionSetup): Finding[] {
  return objects.filters().flatMap(({ className, params, at }) => {
    if (className !== 'filters.CallWorkflow') return []
    const rights = ['requireRequestorMatch', 'allowGroups', 'subject']
    if (rights.every((name) => params.values(name).every((text) => text === ''))) {
      const message = 'callers without a directory entry can act for every user, in any name and with every group'
      return [fail(at('allowedWorkflow'), message)]
    }
    const off = params.values('requireRequestorMatch').some((text) => text.toLowerCase() === 'false')
    return [
      ...(off
        ? [
            fail(
              at('requireRequestorMatch'),
              'callers can name someone else as the requester',
              'Leave "requireRequestorMatch" on.',
            ),
          ]
        : []),
      ...(params.values('allowGroups').includes('*')
        ? [fail(at('allowGroups'), 'callers can write every group', 'List the groups in "allowGroups".')]
        : []),
      ...(params.values('subject').includes('any')
        ? [warn(at('subject'), 'callers can act for every user', 'Name the subjects that callers may act for.')]
        : []),
    ]
  })
}

function findMissingAuditCopy({ objects, settings }: ProductionSetup): Finding[] {
  const copies = objects.auditCopies()
  const local = copies.filter(
    ({ className, params }) => className === 'auditSinks.File' && isBesideDatabase(params.values('file'), settings),
  )
  if (local.length < copies.length) return []
  const elsewhere = 'so an old backup can replace it unnoticed, and someone who has the key can rewrite it'
  if (copies.length === 0)
    return [fail('the configuration', `no copy or anchor of the audit is elsewhere, ${elsewhere}`)]
  return local.map(({ at }) => fail(at('file'), `the file is on the disk of the audit itself, ${elsewhere}`))
}

/** What `gatehouse check --production` verifies, in the order of docs/guides/hardening.md: each title is a heading there. */
export const productionChecks: readonly ProductionCheck[] = [
  {
    id: 'tls',
    title: 'Encrypt the public listener',
    remedy:
      'Give --tls-cert and --tls-key, or put a proxy with TLS in front and name its addresses by --trusted-proxy.',
    find: findPlainListener,
  },
  {
    id: 'certificate',
    title: 'Renew certificates in time',
    remedy: 'Replace certificate and key together; a running gateway takes them up within seconds.',
    find: (setup) => {
      const bad = findBadCertificates(setup)
      return bad.some(({ level }) => level === 'fail') ? bad : [...bad, ...findOwnCertificate(setup)]
    },
    note: certificateNote,
  },
  {
    id: 'public-url',
    title: 'Set the public address',
    remedy: 'Set GATEHOUSE_URL to the https address that users see, with a host that URLs are configured for.',
    find: findWrongUrl,
  },
  {
    id: 'keys',
    title: 'Keep the keys',
    remedy: closedModes,
    find: findUnsafeKeys,
  },
  {
    id: 'database',
    title: 'Encrypt the connection to PostgreSQL',
    remedy: 'Add sslmode=verify-full to the address, and sslrootcert=FILE for an authority of your own.',
    find: findPlainDatabase,
  },
  {
    id: 'metrics',
    title: 'Keep metrics inside',
    remedy: 'Let --metrics listen on a loopback or private address, or restrict who reaches it by a network policy.',
    find: findPublicMetrics,
  },
  {
    id: 'demo-passwords',
    title: 'Remove demo passwords',
    remedy: 'Remove "demoPasswords", and set passwords by "gatehouse user passwd".',
    find: findDemoPasswords,
  },
  {
    id: 'development-issuer',
    title: 'Remove the development issuer',
    remedy: 'Remove filters.DevelopmentIssuer.',
    find: findDevelopmentIssuers,
  },
  {
    id: 'cookies',
    title: 'Protect session cookies',
    remedy: 'Remove the field.',
    find: findOpenCookies,
  },
  {
    id: 'second-factor',
    title: 'Require a second factor of administrators',
    remedy: 'Add auth.Totp or auth.Passkey as a required link of the chain.',
    find: findWeakAdministrators,
  },
  {
    id: 'mail-links',
    title: 'Link users by verified claims',
    remedy: 'Remove "acceptUnverifiedMail", or look users up by a claim that they cannot choose.',
    find: findUnverifiedMail,
  },
  {
    id: 'registration',
    title: 'Guard registration',
    remedy:
      'Add a human check ("humanCheck"), "requireInvitation", or an approval before the first task that provisions, on every way.',
    find: findOpenRegistration,
  },
  {
    id: 'call-workflow',
    title: 'Narrow call-workflow',
    remedy:
      'List groups in "allowGroups", leave "requireRequestorMatch" on, or name the subjects that callers may act for.',
    find: findOpenCallWorkflow,
  },
  {
    id: 'audit',
    title: 'Copy the audit elsewhere',
    remedy: 'Add an AuditSink or an AuditAnchor that writes to another machine or disk.',
    find: findMissingAuditCopy,
  },
]

/** One line of the result: a check without findings, or one finding. */
export interface CheckedLine {
  readonly level: 'ok' | 'warn' | 'fail'
  readonly check: string
  readonly title: string
  readonly at?: string
  readonly message?: string | undefined
  readonly remedy?: string
}

export function runProductionChecks(setup: ProductionSetup): CheckedLine[] {
  return productionChecks.flatMap(({ id: check, title, remedy, find, note }): CheckedLine[] => {
    const found = find(setup)
    const message = found.length === 0 ? note?.(setup) : undefined
    if (found.length === 0) return [{ level: 'ok', check, title, message }]
    return found.map((finding: Finding) => ({
      ...finding,
      message: withoutSecrets(finding.message),
      check,
      title,
      remedy: finding.remedy ?? remedy,
    }))
  })
}

const words = { ok: 'ok  ', warn: 'warn', fail: 'FAIL' } as const

/** `FAIL cookies: portal.yaml:14:5: spec.cookieConfig.secure: what is wrong. What to do.` */
export const formatChecked = ({ level, check, title, at, message, remedy }: CheckedLine): string =>
  `${words[level]} ${check}: ${at === undefined ? [title, message].filter(Boolean).join(': ') : `${at}: ${message}. ${remedy}`}`
