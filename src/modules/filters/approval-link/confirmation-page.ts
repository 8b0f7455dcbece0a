import { isNobodysName } from '#modules/shared/login/login-name.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import { html, page } from '#sdk/filter/page.ts'
import type { ApprovalView } from '#sdk/workflow/approvals.ts'

export const maxCommentLength = 2000

const registering = 'a visitor who registered without signing in'

export interface Confirmation {
  readonly approval: ApprovalView
  readonly approver: string
  readonly approve: boolean
  readonly token: string
  /** Where the form goes. */
  readonly action: string
}

/** Says what is asked and by whom, and asks once more: opening the link decides nothing. */
export function confirmationPage({ approval, approver, approve, token, action }: Confirmation): GatewayResponse {
  const word = approve ? 'Approve' : 'Deny'
  const rows = [
    ['Request', approval.label],
    ['Workflow', approval.workflow],
    ['For', approval.subject],
    ['Requested by', isNobodysName(approval.requestor) ? registering : approval.requestor],
    ['Submitted by', approval.caller ?? ''],
    ['Reason', approval.reason ?? ''],
    ['Expiry date', approval.accessEnds === undefined ? '' : minuteOf(approval.accessEnds)],
    ['Open since', minuteOf(approval.opened)],
    ['You decide as', approver],
    ['On behalf of', approval.onBehalfOf ?? ''],
  ] as const
  const shown = rows.flatMap(([name, value]) => (value === '' ? [] : [html`<dt>${name}</dt><dd>${value}</dd>\n`]))
  return page(
    200,
    `${word} this request?`,
    html`<dl>
${shown}</dl>
<form method="post" action="${action}">
<input type="hidden" name="token" value="${token}">
<label for="comment">Comment (optional)</label>
<textarea id="comment" name="comment" rows="4" maxlength="${String(maxCommentLength)}"></textarea>
<button type="submit">${word}</button>
</form>`,
  )
}

const minuteOf = (at: Date): string => at.toISOString().slice(0, 16).replace('T', ' ').concat(' UTC')
