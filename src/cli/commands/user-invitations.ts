import type { CommandOutput } from '#cli/command-line/command-line.ts'
import { fitted, listItems, operatorName } from '#cli/command-line/command-line.ts'
import type { Configuration } from '#config/configuration/configuration.ts'
import type { InvitationRecord } from '#features/registration/service/invitation.ts'
import { Invitations } from '#features/registration/service/invitations.ts'
import { type InvitationForm, offersForm } from '#features/registration/service/offered-form.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Storage } from '#server/composition/stores.ts'

export interface InvitationAction {
  readonly word: 'invite' | 'invitations' | 'resend-invitation' | 'revoke-invitation'
  /** The mail address for `invite`, the invitation's id for others. */
  readonly argument: string
  readonly application: string | undefined
  readonly attributes: ReadonlyMap<string, readonly string[]>
  readonly by: string | undefined
}

interface NamedForm {
  readonly application: string
  readonly form: InvitationForm
}

/** Creates, lists, resends or revokes invitations; the gateway sends the mails when it runs. */
export async function runInvitationAction(
  action: InvitationAction,
  configuration: Configuration,
  { registrations: store }: Pick<Storage, 'registrations'>,
  io: CommandOutput,
): Promise<void> {
  const { application, form } = chooseForm(configuration, action.application)
  const name = form.name(application)
  const invitations = new Invitations({ store, clock: systemClock })
  const actor = { by: operatorName(action.by) }
  const lines = (one: InvitationRecord): string[] =>
    fitted([`${one.id}  ${one.state}  ${one.email}  until ${one.expires.toISOString()}  by ${one.invitedBy}`])
  const print = (one: InvitationRecord): void => {
    for (const line of lines(one)) io.stdout(line)
    io.result(wireInvitation(one))
  }
  switch (action.word) {
    case 'invite': {
      const attributes = singleValues(action.attributes)
      const problems = form.problems(action.argument, attributes)
      if (problems.length > 0) throw new Error(problems.join('; '))
      return print(await invitations.create(name, { ...form.mail, email: action.argument, attributes }, actor))
    }
    case 'resend-invitation':
      return print(await withPublicText(invitations.resend(name, action.argument, form.mail, actor)))
    case 'revoke-invitation':
      return print(await withPublicText(invitations.revoke(name, action.argument, actor)))
    case 'invitations': {
      const read = async (limit: number, after: string | undefined) => {
        const page = await invitations.list(name, limit, after)
        return { items: page.invitations, next: page.next }
      }
      await io.list(listItems(read), { lines, json: wireInvitation, noun: 'invitations' })
    }
  }
}

const wireInvitation = ({ id, state, email, expires, invitedBy }: InvitationRecord) => ({
  id,
  state,
  email,
  expires,
  invitedBy,
})

/** The message of the store is for the log; operators see its public text. */
async function withPublicText<T>(work: Promise<T>): Promise<T> {
  return await work.catch((cause: unknown) => {
    throw cause instanceof GatewayError ? new Error(cause.publicText, { cause }) : cause
  })
}

/** Several URLs may have the same form, such as a public one and one for users who invite others. */
function chooseForm({ applications }: Configuration, wanted: string | undefined): NamedForm {
  const forms = applications.flatMap(({ name, urls }) =>
    urls.flatMap(({ filters }) =>
      filters
        .filter(offersForm)
        .flatMap(({ invitations: form }) => (form === undefined ? [] : [{ application: name, form }])),
    ),
  )
  const chosen = wanted === undefined ? forms : forms.filter(({ application }) => application === wanted)
  const [found] = chosen
  if (found === undefined) {
    const of = wanted === undefined ? '' : ` in the application "${wanted}"`
    throw new Error(`the configuration has no filters.Register with an invitationURL${of}`)
  }
  if (new Set(chosen.map(({ application, form }) => form.name(application))).size > 1) {
    const names = [...new Set(forms.map(({ application }) => application))]
    throw new Error(`--application is required, with a single form: ${names.join(' or ')}`)
  }
  return found
}

function singleValues(attributes: ReadonlyMap<string, readonly string[]>): Record<string, string> {
  return Object.fromEntries(
    Array.from(attributes, ([name, values]) => {
      if (values.length > 1) throw new Error(`--attribute ${name}: can be set only once`)
      return [name, values[0] ?? '']
    }),
  )
}
