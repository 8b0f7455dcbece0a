import type { Configuration } from '#sdk/module/configuration.ts'
import type { PreparedTask } from '#sdk/workflow/workflow-task.ts'
import type { ConfiguredFilter, Finding, ProductionSetup } from '#server/production/production-check.ts'

const fail = (at: string, message: string): Finding => ({ level: 'fail', at, message })
const warn = (at: string, message: string): Finding => ({ level: 'warn', at, message })
const isOn = (text: string | undefined): boolean => text?.toLowerCase() === 'true'

export function findDemoPasswords({ objects }: ProductionSetup): Finding[] {
  return objects
    .inserts()
    .filter(({ params }) => params.values('demoPasswords').length > 0)
    .map(({ at }) => fail(at('demoPasswords'), 'everyone who has the configuration knows these passwords'))
}

export function findDevelopmentIssuers({ objects }: ProductionSetup): Finding[] {
  const served = objects
    .filters()
    .filter(({ className }) => className === 'filters.DevelopmentIssuer')
    .map(({ at }) => fail(at(), 'anyone with the data folder can sign tokens of the development issuer'))
  const trusted = objects
    .mechanisms()
    .filter(({ params }) => params.values('issuer').some((issuer) => issuer.toLowerCase().startsWith('http:')))
    .map(({ at }) =>
      fail(at('issuer'), 'the chain trusts an issuer over plain HTTP, as only development issuers are reached'),
    )
  return [...served, ...trusted]
}

export function findOpenCookies({ configuration, objects }: ProductionSetup): Finding[] {
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
/** Another system authenticates the caller, and knows how. */
const outside = new Set(['auth.OpenIDConnect', 'auth.OAuth2JWT', 'auth.OAuth2K8sServiceAccount', 'auth.Plugin'])
type Strength = 'second factor' | 'left to others' | 'none'

/** Filters that let someone administer. */
const administers = ({ className, params }: ConfiguredFilter): boolean =>
  (className === 'filters.Main' && params.values('administrators').length > 0) || className === 'filters.WorkflowAdmin'

type ChainSetup = Pick<ProductionSetup, 'configuration' | 'objects'>

export function findWeakAdministrators(setup: ProductionSetup): Finding[] {
  const { objects } = setup
  return objects.filters().flatMap((filter) => {
    if (!administers(filter)) return []
    const at = filter.at('administrators')
    const { chain } = filter
    if (chain === undefined) return [fail(at, 'administrators need no login here')]
    const strength = strengthOf(chain, setup)
    if (strength === 'none') return [fail(at, `the chain "${chain}" lets administrators in without a second factor`)]
    const weaker = chainsThatReplace(chain, setup).map((other) =>
      fail(at, `a session of the chain "${other}" has no second factor, and its level is enough here`),
    )
    if (strength === 'second factor') return weaker
    const message = `the chain "${chain}" leaves it to another issuer whether administrators need a second factor`
    return [warn(at, message), ...weaker]
  })
}

/** A session is not asked again where its level is enough, so a weaker chain must have a lower one. */
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
    // A link that may fail counts only where it is alone.
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

export function findUnverifiedMail({ objects }: ProductionSetup): Finding[] {
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

export function findOpenRegistration({ objects, configuration }: ProductionSetup): Finding[] {
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

/** Walks a workflow on all its ways, and finds out whether one of them changes a target before someone approved. */
class ApprovalWalk {
  asks = false
  writesUnapproved = false
  readonly #workflows: Configuration['workflows']
  readonly #running = new Set<string>()

  constructor(workflows: Configuration['workflows']) {
    this.#workflows = workflows
  }

  /** Whether every way through it to its end has been approved. */
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
      // Nothing follows a denial but these.
      this.#list(onFailure, approved)
      return true
    }
    // A workflow that runs apart does not wait for an approval of this one.
    const writes = flow.provisions !== undefined || taskType === 'delete' || task.name === 'tasks.AsyncCallWorkflow'
    if (writes && !approved) this.writesUnapproved = true
    // A mapping always continues with onSuccess; other tasks choose between two branches, one of which may be empty.
    const ways = taskType === 'mapping' ? [onSuccess] : [onSuccess, onFailure]
    const after = ways.map((way) => this.#list(way, approved)).every(Boolean)
    return calls.reduce((before, name) => this.run(name, before), after)
  }
}

export function findOpenCallWorkflow({ objects }: ProductionSetup): Finding[] {
  return objects.filters().flatMap(({ className, params, at }) => {
    if (className !== 'filters.CallWorkflow') return []
    const off = params.values('requireRequestorMatch').some((text) => text.toLowerCase() === 'false')
    return [
      ...(off ? [fail(at('requireRequestorMatch'), 'callers can name someone else as the requester')] : []),
      ...(params.values('allowGroups').includes('*') ? [fail(at('allowGroups'), 'callers can write every group')] : []),
      ...(params.values('subject').includes('any') ? [warn(at('subject'), 'callers can act for every user')] : []),
    ]
  })
}

export function findMissingAuditCopy({ objects }: ProductionSetup): Finding[] {
  if (objects.has('AuditSink', 'AuditAnchor')) return []
  const message =
    'no copy or anchor of the audit is elsewhere, so an old backup can replace it unnoticed, and someone who has the key can rewrite it'
  return [fail('the configuration', message)]
}
