import type { PasswordTaskHost } from '#features/passwords/host.ts'
import type { ServedResetLinks } from '#features/passwords/service/reset-links.ts'
import { GatewayError } from '#kernel/errors.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { defineCustomTask, next } from '#sdk/workflow/workflow-task.ts'

/** Mails the user of the run a link to set a password, as `filters.Passwords` does. */
export default defineCustomTask({
  className: 'tasks.MailPasswordLink',
  aliases: ['com.tremolosecurity.provisioning.customTasks.SetPassword'],
  parameters: {
    mechName: text({
      about:
        'The Application whose [filters.Passwords](../filters/filters.Passwords.md) has the link. Any other name, as that of a mechanism of OpenUnison, means the only one of the configuration.',
      fallback: '',
    }),
  },
  prepare: ({ mechName }, { context, pathOf }) => {
    context.refer('password page', mechName, pathOf('mechName'))
    return {
      create: ({ passwords, resetLinks = [] }: PasswordTaskHost) => {
        const { application: form, links } = chooseLinks(mechName, resetLinks)
        const { loginAttribute, mailAttribute } = links.writer
        return {
          async run({ user, run }) {
            const outcome = await passwords.requestReset({
              ...links,
              form,
              filter: { kind: 'equal', attribute: loginAttribute, value: user.userID },
              request: { id: run.id, remoteAddress: '', headers: {} },
              cause: { requestor: run.requester, workflow: { id: run.id, name: run.workflow } },
            })
            if (outcome === 'sent') return next
            const reason =
              outcome === 'too many'
                ? `got ${links.perHour} links within an hour`
                : `is not exactly one active user of the directory with "${mailAttribute}" and a password that can be set`
            throw new GatewayError(
              'WORKFLOW_FAILED',
              `no link to set a password was mailed: "${user.userID}" ${reason}`,
            )
          },
          preview({ user, effects }) {
            const recipient = user.attributes.first(mailAttribute)
            const { subject, text } = links.write('…', 'en')
            if (recipient !== undefined) effects.mail({ recipient, subject, text })
            return next
          },
        }
      },
    }
  },
})

function chooseLinks(name: string, served: readonly ServedResetLinks[]): ServedResetLinks {
  const [first, another] = served
  const named = served.find(({ application }) => application === name)
  if (named !== undefined) return named
  if (first !== undefined && another === undefined) return first
  const problem = first === undefined ? 'no URL has filters.Passwords' : 'several URLs have filters.Passwords'
  const names = served.map(({ application }) => `"${application}"`).join(', ')
  throw new Error(`${problem}; "mechName" must be the name of its Application${names === '' ? '' : `: ${names}`}`)
}
