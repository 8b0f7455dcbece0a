import type { Approval } from '#domain/approval.ts'
import type { Run, RunState, StoredStep } from '#domain/run.ts'
import { terminalLine } from '#server/commands/terminal-line.ts'

/** Everything about one run that is for administrators. What it works on is not part of it. */
export interface RunStory {
  readonly run: Run
  readonly steps: readonly StoredStep[]
  readonly approvals: readonly Approval[]
}

const stateWidth = 9

/** A run in a list: one line, and one more for what went wrong. */
export function runLines(run: Run, width: number): string[] {
  const { created, state, name, subject, requestor, caller, id, incident } = run
  const by = caller === undefined ? requestor : `${requestor} (called by ${caller})`
  const lines = [`${created.toISOString()} ${state.padEnd(stateWidth)} ${id} ${name}, for ${subject}, by ${by}`]
  if (incident !== undefined) lines.push(`    ${incident.task}: ${incident.code}: ${incident.message}`)
  return lines.map((line) => terminalLine(line, width))
}

export function storyLines({ run, steps, approvals }: RunStory, width: number): string[] {
  const lines = [
    `run        ${run.id}`,
    `workflow   ${run.name} (definition ${run.definition})`,
    `state      ${stateText(run)}`,
    `subject    ${run.subject}`,
    `requestor  ${run.requestor}${run.caller === undefined ? '' : ` (called by ${run.caller})`}`,
    ...(run.reason === undefined ? [] : [`reason     ${run.reason}`]),
    ...(run.requestId === undefined ? [] : [`request    ${run.requestId}`]),
    `created    ${run.created.toISOString()}`,
    ...(run.deadline === undefined ? [] : [`deadline   ${run.deadline.toISOString()}`]),
    ...(run.ended === undefined ? [] : [`ended      ${run.ended.toISOString()}`]),
    `targets    ${run.touched ? 'changed' : 'not changed'}`,
    `fence      ${run.fence}`,
    ...(run.incident === undefined
      ? []
      : [`problem    ${run.incident.task}: ${run.incident.code}: ${run.incident.message}`]),
    ...(steps.length === 0 ? [] : ['', 'timeline', ...steps.flatMap(stepLines)]),
    ...(approvals.length === 0 ? [] : ['', 'approvals', ...approvals.flatMap(approvalLines)]),
  ]
  return lines.map((line) => terminalLine(line, width))
}

/** What is known of a run, in the words of its state. */
const stateTexts: Partial<Readonly<Record<RunState, (run: Run) => string>>> = {
  ready: ({ due, attempt }) => `ready, due ${due.toISOString()}${attempt === 0 ? '' : `, ${attempt} attempts so far`}`,
  running: ({ worker, leaseUntil }) => `running at ${worker ?? '?'}, until ${leaseUntil?.toISOString() ?? '?'} at most`,
  incident: () => 'incident: retry, skip or cancel it',
}

function stateText(run: Run): string {
  const text = stateTexts[run.state]?.(run) ?? run.state
  if (run.cancel === undefined) return text
  const { by, reason } = run.cancel
  return `${text}; ${by} asked for its end${reason === undefined ? '' : `: ${reason}`}`
}

function stepLines({ number, attempt, task, taskType, label, started, ended, outcome, error }: StoredStep): string[] {
  const what = label === undefined ? taskType : `${taskType} "${label}"`
  const millis = ended.getTime() - started.getTime()
  const line = `  ${started.toISOString()} ${number}.${attempt} ${task} ${what}: ${outcome} (${millis} ms)`
  return error === undefined ? [line] : [line, `      ${error}`]
}

const shownApprovers = 5

function approvalLines(approval: Approval): string[] {
  const { opened, label, state, id, approvers, decision } = approval
  const more = approvers.length - shownApprovers
  const logins = approvers.slice(0, shownApprovers).map(({ login }) => login)
  const asked = `${logins.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  const lines = [`  ${opened.toISOString()} ${state} "${label}" ${id}, asked: ${asked}`]
  if (decision !== undefined) {
    const { at, by: decider, onBehalfOf, comment } = decision
    const by = `${decider?.login ?? 'no one in time'}${onBehalfOf === undefined ? '' : ` for ${onBehalfOf}`}`
    lines.push(`      ${at.toISOString()} by ${by}${comment === undefined ? '' : `: ${comment}`}`)
  }
  return lines
}
