import { findRequester, isAboutRequester } from '#adapters/workflow-tasks/shared/find-workflow-user.ts'
import { defineTask, template } from '#adapters/workflow-tasks/shared/task-fields.ts'
import { renderTask, templateReads } from '#adapters/workflow-tasks/shared/task-template.ts'
import type { Directory } from '#identity/directory.ts'
import { userIdName } from '#identity/mapping/mapped-value.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import type { Template } from '#kernel/template.ts'
import { escapeHtml } from '#kernel/text/html.ts'
import { type AttributePlace, noFlow } from '#sdk/flow/flow.ts'
import { checkMail, isMailAddress, type MailText, type StepMail } from '#sdk/mail/mail.ts'
import { textOfHtml } from '#sdk/mail/mail-body.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { referNotifier } from '#sdk/notifier/notifier.ts'
import { onDirectory } from '#sdk/workflow/preview.ts'
import { next, type TaskContext } from '#sdk/workflow/workflow-task.ts'
import { userValues } from '#sdk/workflow/workflow-user.ts'

const fields = {
  subject: template({ about: 'The subject, one line; a template.', required: true }),
  msg: template({ about: 'The text of the mail; a template.', required: true }),
  mailAttrib: text({ about: 'The attribute with the address.', required: true }),
  contentType: text({
    about: '`text/html` where `msg` is HTML, else `text/plain`; both forms are sent either way.',
    fallback: '',
  }),
  notifier: text({
    about: 'The [Notifier](../kinds/Notifier.md) that sends it; the default one when absent.',
    fallback: '',
  }),
}

/** While the request has it, and it is not `false`, only the subject gets the mail. */
const sendToSubject = 'unison.sendToSubject'

export default defineTask({
  taskType: 'notifyUser',
  fields,
  prepare: ({ mailAttrib: mailAttribute, notifier, ...given }, { path, issues, context, pathOf }) => {
    const mailTemplate = readMailTemplate(given, pathOf, issues)
    referNotifier(notifier, notifier === '' ? path : pathOf('notifier'), context)
    const address = { attribute: mailAttribute, path: pathOf('mailAttrib') }
    return {
      flow: {
        ...noFlow,
        reads:
          mailAttribute === '' || mailAttribute === userIdName ? mailTemplate.reads : [address, ...mailTemplate.reads],
      },
      create: async ({ directory }) =>
        onDirectory(directory, async (people, task) => {
          const said = mailTemplate.render(task)
          const mail: MailText = notifier === '' ? said : { ...said, notifier }
          const [own] = userValues(task.user, mailAttribute)
          if (own === undefined) {
            throw new GatewayError('WORKFLOW_FAILED', `"${task.user.userID}" has no "${mailAttribute}" to be mailed at`)
          }
          const { attributes } = task.user
          send({ ...mail, recipient: own, reader: { identity: task.run.who.subject, attributes } }, task)
          const other = await requesterOf(task, mailAttribute, people)
          if (other !== undefined && other.recipient.toLowerCase() !== own.toLowerCase()) {
            send({ ...mail, ...other }, task)
          }
          return next
        }),
    }
  },
})

function send(mail: StepMail, { effects }: TaskContext): void {
  checkMail(mail)
  effects.mail(mail)
}

/** The requester gets the mail too, if the directory has an address. */
async function requesterOf(
  context: TaskContext,
  mailAttribute: string,
  directory: Pick<Directory, 'search' | 'entry'>,
): Promise<Pick<StepMail, 'recipient' | 'reader'> | undefined> {
  const { request, run, log } = context
  const only = request.get(sendToSubject)
  if (isAboutRequester(context) || (only !== undefined && String(only).toLowerCase() !== 'false')) {
    return undefined
  }
  const entry = await findRequester(context, directory)
  const address = entry?.attributes.first(mailAttribute)
  if (address !== undefined && isMailAddress(address)) return { recipient: address, reader: entry }
  log.info('no mail to the requester: the directory has no address', {
    requestor: run.requester,
    found: entry !== undefined,
  })
  return undefined
}

/** The mail of a task, with placeholders. */
interface MailTemplate {
  /** The attributes it reads. */
  readonly reads: readonly AttributePlace[]
  /** Values are escaped if the text is HTML. `checkMail` rejects a value that would break the subject into lines. */
  render(context: Pick<TaskContext, 'request' | 'user'>): MailText
}

interface MailFields {
  readonly subject: Template
  readonly msg: Template
  readonly contentType: string
}

function readMailTemplate(
  { subject, msg, contentType }: MailFields,
  pathOf: (field: keyof MailFields) => Path,
  issues: Issues,
): MailTemplate {
  const type = contentType.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const isHtml = type !== '' && type !== 'text/plain'
  if (isHtml && type !== 'text/html') {
    issues.error(pathOf('contentType'), '"contentType" must be text/plain or text/html')
  }
  return {
    reads: [...templateReads(subject, pathOf('subject')), ...templateReads(msg, pathOf('msg'))],
    render: (context) => ({ subject: renderTask(subject, context).trim(), ...renderBody(msg, isHtml, context) }),
  }
}

function renderBody(body: Template, isHtml: boolean, context: Pick<TaskContext, 'request' | 'user'>) {
  if (!isHtml) return { text: renderTask(body, context) }
  const html = renderTask(body, context, escapeHtml)
  return { text: textOfHtml(html), html }
}
