import type { Identity, UserRef } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { isLoginName } from '#modules/shared/login/login-name.ts'
import { anothersLoginText } from '#modules/shared/login/own-login.ts'
import type { PortalWorkflow } from '#sdk/filter/portal.ts'
import { chooseAccessEnd } from '#sdk/workflow/access-end.ts'
import type { ParameterSet } from '#sdk/workflow/dynamic-workflow.ts'
import { isEngineKey } from '#sdk/workflow/engine-keys.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'
import { loginOf, type MainParts, ownsLogin, rightsOf, userOf } from './main-parts.ts'
import type { CartLine } from './request-body.ts'

const atOnce = 4

/** What the caller is told about a line; nothing of it was started. */
export class Refused extends Error {}

/** A user for whom something is requested; without an identity for one who has to be created first. */
export interface RequestSubject {
  readonly login: string
  readonly identity?: Identity
}

/** A line whose every part was checked. */
export interface ReadyLine {
  readonly uuid: string
  readonly workflow: string
  readonly reason: string
  readonly parameters: ParameterSet
  /** When the access is to end; undefined for good. */
  readonly ends: Date | undefined
  /** With logins as the directory spells them; at least one, each once. */
  readonly subjects: readonly RequestSubject[]
  /** Those of them who have to be created first. */
  readonly unknown: readonly string[]
  readonly preApproval: { readonly approve: boolean; readonly comment: string } | undefined
}

/** The caller requests for themselves, and their login belongs to another user. */
export class AnothersLogin extends Refused {}

/** Throws Refused. Only what is listed, and of an org that the caller sees, can be asked for. */
export async function readLine(line: CartLine, subject: Subject, parts: MainParts): Promise<ReadyLine> {
  const workflow = await findWorkflow(line.name, subject, parts)
  const reason = readReason(line.reason ?? '', parts)
  const ends = readEnd(line.expires ?? '', workflow, parts)
  const { delegate, preApprove } = rightsOf(parts.settings, subject)
  if (line.doPreApproval === true && !preApprove) throw new Refused('Unauthorized')
  const own = loginOf(parts, subject)
  const wanted = subjectsOf(line)
  const isNamed = wanted.some((login) => sameLogin(login, own))
  const isOwn = (wanted.length === 0 || isNamed) && (await ownsLogin(parts, subject))
  if (!isOwn && (wanted.length === 0 || (isNamed && !delegate))) throw new AnothersLogin(anothersLoginText)
  const others = isOwn ? wanted.filter((login) => !sameLogin(login, own)) : wanted
  if (others.length > 0 && !delegate) throw new Refused('Unauthorized')
  const preApproval = readPreApproval(line)
  const parameters = await readParameters(line.encryptedParams ?? '', workflow, subject, parts)
  const found = await inParallel(others, atOnce, (login) => findLogin(login, parts))
  const unknown = others.filter((_, i) => found[i] === undefined)
  const lost = parts.settings.given.jitWorkflow === undefined ? unknown : unknown.filter((login) => !isLoginName(login))
  if (lost.length > 0) throw new Refused(lost.map((login) => `Error, user ${login} does not exist;`).join(''))
  const known = others.map((login, i): RequestSubject => found[i] ?? { login })
  const subjects = onceEach(isOwn ? [{ login: own, identity: subject.identity }, ...known] : known)
  return { uuid: line.uuid, workflow: workflow.name, reason, parameters, ends, subjects, unknown, preApproval }
}

async function findWorkflow(name: string, subject: Subject, { host, visibility }: MainParts): Promise<PortalWorkflow> {
  const listed = host.portal.workflows.find((workflow) => workflow.name === name && workflow.inList)
  if (listed === undefined) throw new Refused('Not Found')
  const sees = (await visibility.workflows(subject)).includes(listed)
  if (!sees) throw new Refused('Unauthorized')
  return listed
}

function readReason(given: string, { settings }: MainParts): string {
  const { requireReason, reasonIsList, reasons } = settings.given
  const reason = given.trim()
  if (reason === '' && requireReason) throw new Refused('Reason is required')
  if (reason !== '' && reasonIsList && !reasons.includes(reason)) throw new Refused('Reason is not in the list')
  return reason
}

function readEnd(text: string, { accessEnds }: PortalWorkflow, { host }: MainParts): Date | undefined {
  const chosen = chooseAccessEnd(text, accessEnds, host.clock())
  if ('refusal' in chosen) throw new Refused(chosen.refusal)
  return chosen.ends
}

/** One login a line, as people type them; blank ones and repetitions do not count. */
function subjectsOf({ subjects }: CartLine): string[] {
  const typed = (subjects ?? []).map((login) => login.trim()).filter((login) => login !== '')
  return typed.filter((login, i) => typed.findIndex((other) => sameLogin(login, other)) === i)
}

function readPreApproval({ doPreApproval, approved, approvalReason }: CartLine): ReadyLine['preApproval'] {
  if (doPreApproval !== true) return undefined
  const comment = (approvalReason ?? '').trim()
  if (comment === '') throw new Refused('Approval reason is required')
  if (approved === undefined || approved === null) throw new Refused('Approval decision is required')
  return { approve: approved, comment }
}

/** What was offered to this caller, and is still on offer to this caller now. */
async function readParameters(
  reference: string,
  { name, dynamic }: PortalWorkflow,
  subject: Subject,
  parts: MainParts,
): Promise<ParameterSet> {
  if (dynamic === undefined) {
    if (reference === '') return {}
    throw new Refused('Not Found')
  }
  const offered =
    reference === '' ? undefined : await parts.host.portal.memory.offered(userOf(parts, subject), reference)
  if (offered?.workflow !== name) throw new Refused('Not Found')
  const sets = await dynamic.parameterSets(subject)
  if (!sets.some((set) => sameParameters(set, offered.parameters))) throw new Refused('Unauthorized')
  if (Object.keys(offered.parameters).some(isEngineKey)) {
    throw new GatewayError('INTERNAL', `the source of "${name}" gives a parameter that steers the engine`)
  }
  return offered.parameters
}

function sameParameters(one: ParameterSet, other: ParameterSet): boolean {
  const names = Object.keys(one)
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && one[name] === other[name])
  )
}

/** One user may be named by several logins. */
const onceEach = (subjects: readonly RequestSubject[]): RequestSubject[] => [
  ...new Map(subjects.map((one) => [one.identity ?? one.login, one])).values(),
]

async function findLogin(login: string, { people }: MainParts): Promise<UserRef | undefined> {
  try {
    const entry = await people.byLogin(login)
    return entry && { login: people.loginIn(entry, login), identity: entry.identity }
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'CONFLICT') {
      throw new Refused(`Error, there are several users ${login};`)
    }
    throw error
  }
}
