import { Text } from '@mantine/core'
import type { RequestDetails } from '#features/portal/contract/main-requests.ts'
import { type Translation, useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import type { MessageKey } from '../../app/messages.ts'
import { Icon, type IconName } from '../../components/icon.tsx'
import { type NameOf, useNames } from '../../components/person-names.tsx'
import { stateLooks } from '../../components/request-states.ts'
import { requesterText } from '../../components/requester.tsx'
import type { Tone } from '../../components/status.tsx'
import { type TimelineEntry, timelineOf } from './timeline.ts'

interface Line {
  readonly icon: IconName
  readonly tone: Tone
  readonly title: string
  readonly text?: string | undefined
}

/** Names of tasks, for users who do not know the workflow. */
const tasks: Readonly<Record<string, MessageKey>> = {
  provision: 'task.provision',
  delete: 'task.delete',
  addGroup: 'task.addGroup',
  notifyUser: 'task.notifyUser',
  approval: 'task.approval',
}

export function RequestTimeline({ details }: { readonly details: RequestDetails }) {
  const translation = useTranslation()
  const { dateTime, relative } = translation
  const nameOf = useNames()
  return (
    <ol className="timeline">
      {timelineOf(details).map((entry) => {
        const { icon, tone, title, text } = lineOf(entry, translation, nameOf)
        return (
          <li key={keyOf(entry)}>
            <span className={`timeline-mark status-${tone}`}>
              <Icon name={icon} size={14} />
            </span>
            <Text fw={600}>{title}</Text>
            {text !== undefined && text !== '' && (
              <Text size="sm" className="preline">
                {isolated(text)}
              </Text>
            )}
            <Text size="sm" c="dimmed">
              <time dateTime={entry.at} title={dateTime(entry.at)}>
                {dateTime(entry.at)} · {relative(entry.at)}
              </time>
            </Text>
          </li>
        )
      })}
    </ol>
  )
}

function keyOf(entry: TimelineEntry): string {
  if (entry.kind === 'step') return `step ${entry.step.id} ${entry.step.attempt}`
  return 'approval' in entry ? `${entry.kind} ${entry.approval.id}` : entry.kind
}

function lineOf(entry: TimelineEntry, { t, tn, dateTime }: Translation, nameOf: NameOf): Line {
  switch (entry.kind) {
    case 'submitted':
      return {
        icon: 'dot',
        tone: 'plain',
        title: t('timeline.submitted', { by: requesterText(entry.by, t, nameOf) }),
        text: entry.until && t('timeline.until', { when: dateTime(entry.until) }),
      }
    case 'step': {
      const { taskType, label, outcome, attempt } = entry.step
      const isBad = outcome === 'failed'
      const step = label ?? t(tasks[taskType] ?? 'task.other')
      return {
        icon: isBad ? 'warning' : 'check',
        tone: isBad ? 'bad' : 'good',
        title: isBad ? t('timeline.stepFailed', { step, attempt }) : step,
      }
    }
    case 'retry':
      return { icon: 'clock', tone: 'waiting', title: t('timeline.retry', { attempt: entry.attempt }) }
    case 'behind':
      return {
        icon: 'clock',
        tone: 'waiting',
        title: entry.label === undefined ? t('timeline.behindOther') : t('timeline.behind', { label: entry.label }),
      }
    case 'opened':
      return { icon: 'clock', tone: 'plain', title: t('timeline.asked', { label: entry.approval.label }) }
    case 'decided': {
      const { status, label, decision } = entry.approval
      const isApproved = status === 'approved'
      const by = decision?.by === undefined ? '–' : nameOf(decision.by)
      return {
        icon: isApproved ? 'check' : 'close',
        tone: isApproved ? 'good' : 'bad',
        title: t(isApproved ? 'timeline.approved' : 'timeline.denied', { label, by }),
        text: decision?.comment,
      }
    }
    case 'holding': {
      const { label, approvers, escalation } = entry.approval
      const names = approvers.map((login) => nameOf(login)).join(', ')
      const who = names === '' ? t('timeline.nobody') : t('timeline.holders', { who: names })
      return {
        icon: 'clock',
        tone: 'waiting',
        title: t('timeline.opened', { label }),
        text: escalation > 0 ? `${who}\n${tn('timeline.escalated', escalation)}` : who,
      }
    }
    case 'cancelled':
    case 'stopped':
      return {
        icon: 'close',
        tone: 'plain',
        title: t(entry.kind === 'stopped' ? 'timeline.stopped' : 'timeline.cancelled', { by: nameOf(entry.by) }),
        text: entry.reason,
      }
    case 'ended': {
      const { icon, tone, text } = stateLooks[entry.state]
      return { icon, tone, title: t(text) }
    }
  }
}
