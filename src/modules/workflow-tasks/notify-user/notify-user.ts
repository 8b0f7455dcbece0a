import type { Directory } from '#identity/directory.ts'
import { userIdName } from '#identity/mapping/mapped-value.ts'
import { GatewayError } from '#kernel/errors.ts'
import { escapeHtml } from '#kernel/html.ts'
import type { Issues } from '#kernel/issues.ts'
import type { Template } from '#kernel/template.ts'
import { findRequester, isAboutRequester } from '#modules/shared/tasks/find-workflow-user.ts'
import { TaskFields } from '#modules/shared/tasks/task-fields.ts'
import { renderTask, templateReads } from '#modules/shared/tasks/task-template.ts'
import { checkMail, isMailAddress, type MailText } from '#sdk/notifier/mail.ts'
import { textOfHtml } from '#sdk/notifier/mail-body.ts'
import { referNotifier } from '#sdk/notifier/notifier.ts'
import { type AttributePlace, noFlow } from '#sdk/workflow/flow.ts'
import { onDirectory } from '#sdk/workflow/preview.ts'
import { next, type TaskContext, type TaskModule } from '#sdk/workflow/workflow-task.ts'
import { userValues } from '#sdk/workflow/workflow-user.ts'

const fields = {
  subject: { about: 'The subject, one line; a template.', required: true },
  msg: { about: 'The text of the mail; a template.', required: true },
  mailAttrib: { about: 'The attribute with the address.', required: true },
  contentType: {
    about: '`text/html` where `msg` is HTML, else `text/plain`; both forms are sent either way.',
    required: false,
  },
  notifier: { about: 'The Notifier that sends it; the default one when absent.', required: false },
} as const

/** While the request has it, and it is not `false`, only the subject is mailed. */
const sendToSubject = 'unison.sendToSubject'

const notifyUser: TaskModule = {
  taskType: 'notifyUser',
  fields,
  branches: false,
  prepare: (given, path, issues, context) => {
    const read = new TaskFields(fields, given, path, issues)
    const template = readMailTemplate(read, { subject: 'subject', text: 'msg', contentType: 'contentType' }, issues)
    const mailAttribute = read.text('mailAttrib')
    const notifier = read.text('notifier')
    referNotifier(notifier, notifier === '' ? path : read.pathOf('notifier'), context)
    const address = { attribute: mailAttribute, path: read.pathOf('mailAttrib') }
    return {
      calls: [],
      flow: {
        ...noFlow,
        reads: mailAttribute === '' || mailAttribute === userIdName ? template.reads : [address, ...template.reads],
      },
      create: async ({ directory }) =>
        onDirectory(directory, async (people, task) => {
          const said = template.render(task)
          const mail: MailText = notifier === '' ? said : { ...said, notifier }
          const [own] = userValues(task.user, mailAttribute)
          if (own === undefined) {
            throw new GatewayError('WORKFLOW_FAILED', `"${task.user.userID}" has no "${mailAttribute}" to be mailed at`)
          }
          send(own, mail, task)
          const other = await requesterAddress(task, mailAttribute, people)
          if (other !== undefined && other.toLowerCase() !== own.toLowerCase()) send(other, mail, task)
          return next
        }),
    }
  },
}

function send(recipient: string, mail: MailText, { effects }: TaskContext): void {
  const whole = { ...mail, recipient }
  checkMail(whole)
  effects.mail(whole)
}

/** Whoever asked for the run is told as well, where the directory knows an address. */
async function requesterAddress(
  context: TaskContext,
  mailAttribute: string,
  directory: Pick<Directory, 'search' | 'entry'>,
): Promise<string | undefined> {
  const { request, requestor, log } = context
  const only = request.get(sendToSubject)
  if (isAboutRequester(context) || (only !== undefined && String(only).toLowerCase() !== 'false')) {
    return undefined
  }
  const entry = await findRequester(context, directory)
  const address = entry?.attributes.first(mailAttribute)
  if (address !== undefined && isMailAddress(address)) return address
  log.info('no mail to the requester: the directory has no address', { requestor, found: entry !== undefined })
  return undefined
}

export default notifyUser

/** A mail as a task writes it, with places for values. */
interface MailTemplate {
  /** The attributes it reads. */
  readonly reads: readonly AttributePlace[]
  /** Values are escaped where the text is HTML. A value that would break the subject into lines is left to `checkMail`. */
  render(context: Pick<TaskContext, 'request' | 'user'>): MailText
}

/** The mail in the fields of these names of a task; without a field for the content type it is plain text. */
function readMailTemplate(
  fields: TaskFields,
  names: { readonly subject: string; readonly text: string; readonly contentType?: string },
  issues: Issues,
): MailTemplate {
  const subject = fields.template(names.subject)
  const body = fields.template(names.text)
  const isHtml = names.contentType !== undefined && readIsHtml(fields, names.contentType, issues)
  return {
    reads: [...templateReads(subject, fields.pathOf(names.subject)), ...templateReads(body, fields.pathOf(names.text))],
    render: (context) => ({ subject: renderTask(subject, context).trim(), ...renderBody(body, isHtml, context) }),
  }
}

function renderBody(body: Template, isHtml: boolean, context: Pick<TaskContext, 'request' | 'user'>) {
  if (!isHtml) return { text: renderTask(body, context) }
  const html = renderTask(body, context, escapeHtml)
  return { text: textOfHtml(html), html }
}

function readIsHtml(fields: TaskFields, name: string, issues: Issues): boolean {
  const type = fields.text(name).split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (type === '' || type === 'text/plain') return false
  if (type !== 'text/html') issues.error(fields.pathOf(name), `"${name}" must be text/plain or text/html`)
  return true
}
