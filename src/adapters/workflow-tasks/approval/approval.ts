import { findRequester, findUser, isAboutRequester } from '#adapters/workflow-tasks/shared/find-workflow-user.ts'
import { defineTask, template } from '#adapters/workflow-tasks/shared/task-fields.ts'
import { renderTask, templateReads } from '#adapters/workflow-tasks/shared/task-template.ts'
import type { Attributes } from '#identity/attributes.ts'
import type { Directory } from '#identity/directory.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import { isJsonObject } from '#kernel/json.ts'
import { suggestion } from '#kernel/suggest.ts'
import { findTemplateKey, type Template } from '#kernel/template.ts'
import { oneLine } from '#kernel/text/one-line.ts'
import { spanMillis, type TimeSpan } from '#kernel/time.ts'
import { noFlow } from '#sdk/flow/flow.ts'
import { isMailAddress, type MailSentence, type MailText, type StepMail } from '#sdk/mail/mail.ts'
import { anything, flag, text } from '#sdk/module/parameter-types.ts'
import { referNotifier } from '#sdk/notifier/notifier.ts'
import { type Rule, ruleScopes } from '#sdk/rule/rule.ts'
import type { ApprovalRequest, ApprovalSignal, ApproverMail } from '#sdk/workflow/approval-request.ts'
import { onDirectory } from '#sdk/workflow/preview.ts'
import type { TaskContext, TaskOutcome, TaskParseContext } from '#sdk/workflow/workflow-task.ts'
import { sameLogin, userValues } from '#sdk/workflow/workflow-user.ts'
import { parseRuleTemplate, type RuleTemplate, type RuleValues } from './rule-template.ts'

const fields = {
  label: template({ about: 'What is requested, as approvers see it; a template.', required: true }),
  emailTemplate: template({ about: 'The text of the mail to approvers; a template.', required: true }),
  mailAttr: text({ about: 'The attribute with the mail address of a user.', required: true }),
  failureEmailSubject: template({
    about: 'The subject of the mail to the requester after a denial; a template.',
    required: true,
  }),
  failureEmailMsg: template({
    about: 'The text of that mail; a template. `${reason}` is the comment of the approver.',
    required: true,
  }),
  approvers: anything({
    about: 'Rules with `scope` and `constraint`; users who pass one of them may decide. Values can be templates.',
    required: true,
  }),
  escalationPolicy: anything({
    about: 'What happens when no one decides: `escalations` in order, and `failure`.',
  }),
  allowSelfApproval: flag({
    about: '`true` lets the requester and the subject decide, if they are approvers; `false` when absent.',
  }),
  commentRequired: flag({
    about: '`true` refuses a decision without a comment; `false` when absent.',
  }),
  notifier: text({
    about: 'The [Notifier](../kinds/Notifier.md) that sends these mails; the default one when absent.',
    fallback: '',
  }),
  mailRequired: flag({
    about:
      '`true` mails approvers at once, even if they chose the digest or no mail in the portal; `false` when absent.',
  }),
  channelNotifier: text({
    about:
      'A Notifier of the class [notifiers.Webhook](../notifiers/notifiers.Webhook.md) whose channel also gets the text of the mail to approvers, with links that require a login.',
    fallback: '',
  }),
}

interface Config {
  readonly label: Template
  readonly emailTemplate: Template
  readonly mailAttr: string
  readonly failureEmailSubject: Template
  readonly failureEmailMsg: Template
  readonly approvers: readonly RuleTemplate[]
  readonly policy: EscalationPolicy
  readonly allowSelf: boolean
  readonly commentRequired: boolean
  readonly mailRequired: boolean
  readonly notifier: Pick<MailText, 'notifier'>
  readonly channel: Pick<ApproverMail, 'channel'>
}

const never: Rule = { scope: 'filter', constraint: '(|)', filter: { kind: 'or', filters: [] } }

const texts = ['label', 'emailTemplate', 'failureEmailSubject', 'failureEmailMsg'] as const
/** Set before the mail about a denial is rendered, so that the mail and the subtasks can use it. */
const reasonAttribute = 'reason'

export default defineTask({
  taskType: 'approval',
  fields,
  branches: true,
  prepare: (given, { path, issues, context, pathOf }) => {
    const { approvers, escalationPolicy: policy, notifier, channelNotifier: channel } = given
    const parts = new ApprovalFields(issues, context)
    const config: Config = {
      ...given,
      approvers: approvers === undefined ? [] : parts.rules(approvers, pathOf('approvers')),
      policy:
        policy === undefined
          ? { escalations: [], failure: undefined }
          : parts.policy(policy, pathOf('escalationPolicy')),
      allowSelf: given.allowSelfApproval,
      notifier: notifier === '' ? {} : { notifier },
      channel: channel === '' ? {} : { channel },
    }
    if (channel !== '') context.refer('channel notifier', channel, pathOf('channelNotifier'))
    referNotifier(notifier, notifier === '' ? path : pathOf('notifier'), context)
    const reads = texts.flatMap((name) =>
      templateReads(config[name], pathOf(name)).filter(({ attribute }) => attribute !== reasonAttribute),
    )
    return {
      flow: {
        ...noFlow,
        reads,
        produces: [{ attribute: reasonAttribute, path: pathOf('failureEmailMsg') }],
        approverGroups: config.approvers.flatMap(({ group }) => group ?? []),
        commentRequired: config.commentRequired,
      },
      create: async ({ directory }) =>
        onDirectory(directory, (people, task) =>
          task.signal?.kind === 'approval'
            ? decided(config, task.signal, task, people)
            : { kind: 'wait', approval: request(config, task) },
        ),
    }
  },
})

function request(config: Config, context: TaskContext): ApprovalRequest {
  const label = oneLine(renderTask(config.label, context), 500)
  const values = ruleValues(context)
  const { escalations, failure } = config.policy
  return {
    label,
    approvers: bindAll(config.approvers, values, context),
    allowSelf: config.allowSelf,
    ...(config.commentRequired ? { commentRequired: true } : {}),
    escalations: escalations.map(({ after, approvers, onlyIf }) => ({
      after,
      approvers: bindAll(approvers, values, context),
      // A condition that cannot be evaluated is false.
      ...(onlyIf === undefined ? {} : { onlyIf: bindAll([onlyIf], values, context)[0] ?? never }),
    })),
    failure: failure === undefined ? undefined : bindAll(failure, values, context),
    mail: {
      text: renderTask(config.emailTemplate, context),
      address: config.mailAttr,
      ...config.notifier,
      ...config.channel,
      ...(config.mailRequired ? { required: true } : {}),
    },
  }
}

/** Rules with missing values match no user; they are omitted and logged. */
function bindAll(templates: readonly RuleTemplate[], values: RuleValues, { log }: TaskContext): Rule[] {
  return templates.flatMap((template) => {
    const rule = template.bind(values)
    if (rule !== undefined) return [rule]
    log.warn('an approval rule could not be filled with values', { constraint: template.constraint })
    return []
  })
}

function ruleValues({ request: map, user }: TaskContext): RuleValues {
  return {
    key: (name) => {
      const value = findTemplateKey(map, name)
      return typeof value === 'string' ? [value] : []
    },
    attribute: (name) => userValues(user, name),
  }
}

async function decided(
  config: Config,
  { approval: id, approved, comment }: ApprovalSignal,
  context: TaskContext,
  directory: Pick<Directory, 'search' | 'entry'>,
): Promise<TaskOutcome> {
  const { user, request: map, effects, log } = context
  map.set('APPROVAL_ID', id)
  map.set('APPROVAL_RESULT', approved)
  if (approved) return { kind: 'branch', branch: 'onSuccess' }
  user.attributes.set(reasonAttribute, comment === undefined ? [] : [comment])
  const subject = oneLine(renderTask(config.failureEmailSubject, context), 300)
  const text = renderTask(config.failureEmailMsg, context)
  const sentences = [...commentSentence(text, comment), ...(await callerSentence(context, directory))]
  const { addresses, reader } = await requesterOf(config.mailAttr, context, directory)
  if (addresses.length === 0) log.info('the requester has no mail address, so no denial was sent', { approval: id })
  for (const recipient of addresses) {
    effects.mail({ recipient, subject, text, sentences, reader, ...config.notifier, isOutcome: true })
  }
  return { kind: 'branch', branch: 'onFailure', end: 'denied' }
}

/** The comment of the approver, if the text does not have it. */
const commentSentence = (text: string, comment = ''): readonly MailSentence[] =>
  comment === '' || text.includes(comment) ? [] : [{ key: 'mail.comment', values: { comment } }]

/** Who submitted the request, if that was not the requester. */
async function callerSentence(
  { run: { requester, caller, who } }: TaskContext,
  directory: Pick<Directory, 'search' | 'entry'>,
): Promise<readonly MailSentence[]> {
  if (caller === undefined || sameLogin(caller, requester)) return []
  const entry = await findUser(caller, who.caller, directory)
  const name = oneLine(entry?.attributes.first('displayName') ?? caller, maxName)
  return [{ key: 'mail.submittedBy', values: { name } }]
}

const maxAddresses = 3
const maxName = 200

/** The subject's own addresses if the requester is the subject, who may not be in the directory yet. */
async function requesterOf(
  attribute: string,
  context: TaskContext,
  directory: Pick<Directory, 'search' | 'entry'>,
): Promise<{ readonly addresses: readonly string[]; readonly reader: StepMail['reader'] }> {
  const { user, run } = context
  const addressesOf = (attributes: Pick<Attributes, 'values'> | undefined) =>
    (attributes?.values(attribute) ?? []).filter(isMailAddress).slice(0, maxAddresses)
  const own = isAboutRequester(context) ? addressesOf(user.attributes) : []
  if (own.length > 0) return { addresses: own, reader: { identity: run.who.requester, attributes: user.attributes } }
  const entry = await findRequester(context, directory)
  return { addresses: addressesOf(entry?.attributes), reader: entry }
}

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

const exact = (millis: number): TimeSpan => ({ months: 0, millis })

/** OpenUnison's own words and those of its guide. */
const units: Readonly<Record<string, TimeSpan>> = {
  sec: exact(second),
  min: exact(minute),
  hr: exact(hour),
  hour: exact(hour),
  day: exact(day),
  wk: exact(7 * day),
  week: exact(7 * day),
  month: { months: 1, millis: 0 },
  year: { months: 12, millis: 0 },
}

const maxRules = 100
const maxEscalations = 50

interface EscalationTemplate {
  readonly after: TimeSpan
  readonly approvers: readonly RuleTemplate[]
  readonly onlyIf: RuleTemplate | undefined
}

interface EscalationPolicy {
  readonly escalations: readonly EscalationTemplate[]
  /** Undefined if the approval stays with its approvers. */
  readonly failure: readonly RuleTemplate[] | undefined
}

type Fields = Readonly<Record<string, unknown>>

/** Reads the parts of an approval that are lists and objects. Every problem is reported at its position. */
class ApprovalFields {
  readonly #issues: Issues
  readonly #context: TaskParseContext

  constructor(issues: Issues, context: TaskParseContext) {
    this.#issues = issues
    this.#context = context
  }

  /** At least one, since no one could decide otherwise. */
  rules(value: unknown, path: Path): RuleTemplate[] {
    const items = this.#list(value, path, maxRules)
    if (items === undefined) return []
    if (items.length === 0) this.#issues.error(path, 'at least one rule is required: without a rule no one may decide')
    return items.flatMap((item, i) => this.#rule(item, [...path, i]) ?? [])
  }

  policy(value: unknown, path: Path): EscalationPolicy {
    const policy = this.#object(value, path, ['escalations', 'failure'])
    if (policy === undefined) return { escalations: [], failure: undefined }
    const at = [...path, 'escalations']
    const escalations = this.#list(policy['escalations'], at, maxEscalations) ?? []
    return {
      escalations: escalations.flatMap((item, i) => this.#escalation(item, [...at, i]) ?? []),
      failure: this.#failure(policy['failure'], [...path, 'failure']),
    }
  }

  #rule(value: unknown, path: Path): RuleTemplate | undefined {
    const rule = this.#object(value, path, ['scope', 'constraint'])
    if (rule === undefined) return undefined
    const scope = ruleScopes.find((known) => known === rule['scope'])
    if (scope === undefined) this.#issues.error([...path, 'scope'], `must be one of ${ruleScopes.join(', ')}`)
    const { constraint } = rule
    if (typeof constraint !== 'string' || constraint === '') {
      this.#issues.error([...path, 'constraint'], 'must be text')
      return undefined
    }
    if (scope === undefined) return undefined
    return parseRuleTemplate(scope, constraint, [...path, 'constraint'], this.#issues, this.#context)
  }

  #escalation(value: unknown, path: Path): EscalationTemplate | undefined {
    const names = ['executeAfterTime', 'executeAfterUnits', 'validateEscalationClass', 'azRules']
    const fields = this.#object(value, path, names)
    if (fields === undefined) return undefined
    const after = this.#after(fields, path)
    const approvers = this.rules(fields['azRules'], [...path, 'azRules'])
    const onlyIf = this.#validation(fields['validateEscalationClass'], [...path, 'validateEscalationClass'])
    return after && { after, approvers, onlyIf }
  }

  #after(fields: Fields, path: Path): TimeSpan | undefined {
    const count = wholeNumber(fields['executeAfterTime'])
    if (count === undefined) this.#issues.error([...path, 'executeAfterTime'], 'must be a whole number from 1')
    const unit = fields['executeAfterUnits']
    const span = typeof unit === 'string' && Object.hasOwn(units, unit) ? units[unit] : undefined
    if (span === undefined) {
      this.#issues.error([...path, 'executeAfterUnits'], `must be one of ${Object.keys(units).join(', ')}`)
    }
    if (count === undefined || span === undefined) return undefined
    const after = { months: span.months * count, millis: span.millis * count }
    if (spanMillis(new Date(0), after) !== undefined) return after
    this.#issues.error([...path, 'executeAfterTime'], 'is more than 100 years')
    return undefined
  }

  /** The name of a custom authorization; the text after `!` is its parameters. */
  #validation(value: unknown, path: Path): RuleTemplate | undefined {
    if (value === undefined || value === null || value === '') return undefined
    if (typeof value === 'string') return parseRuleTemplate('custom', value, path, this.#issues, this.#context)
    this.#issues.error(path, 'must be the name of a custom authorization')
    return undefined
  }

  #failure(value: unknown, path: Path): readonly RuleTemplate[] | undefined {
    if (value === undefined || value === null) return undefined
    const failure = this.#object(value, path, ['action', 'azRules'])
    if (failure === undefined) return undefined
    const { action } = failure
    if (action === 'assign') return this.rules(failure['azRules'], [...path, 'azRules'])
    if (action !== 'leave') this.#issues.error([...path, 'action'], 'must be assign or leave')
    return undefined
  }

  #object(value: unknown, path: Path, names: readonly string[]): Fields | undefined {
    if (!isJsonObject(value)) {
      this.#issues.error(path, `must have ${names.join(', ')}`)
      return undefined
    }
    for (const name of Object.keys(value)) {
      if (!names.includes(name)) this.#issues.error([...path, name], `unknown key "${name}"${suggestion(name, names)}`)
    }
    return value
  }

  #list(value: unknown, path: Path, most: number): readonly unknown[] | undefined {
    if (!Array.isArray(value)) {
      this.#issues.error(path, 'must be a list')
      return undefined
    }
    if (value.length > most) this.#issues.error(path, `has more than ${most} entries`)
    return value.slice(0, most)
  }
}

function wholeNumber(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 1 ? number : undefined
}
