import { Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { ConsoleTask } from '#contract/console-workflows.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import type { MessageKey } from '../../../app/messages.ts'
import { Status } from '../../../components/status.tsx'
import { outcomeLooks, type TaskMark } from './task-marks.ts'
import './task-tree.css'

interface TaskTreeProps {
  readonly label: string
  readonly tasks: readonly ConsoleTask[]
  /** What became of each task in a run, by its place. */
  readonly marks?: ReadonlyMap<string, TaskMark>
}

/** A workflow as a diagram: a list of tasks from top to bottom, each with the lists that follow from its result. */
export function TaskTree({ label, tasks, marks }: TaskTreeProps) {
  const { t } = useTranslation()
  if (tasks.length === 0) return <Text c="dimmed">{t('workflows.noTasks')}</Text>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keys have to reach it
    <section className="task-scroll" tabIndex={0} aria-label={label}>
      <TaskList tasks={tasks} marks={marks} />
    </section>
  )
}

interface TaskListProps {
  readonly tasks: readonly ConsoleTask[]
  readonly marks: ReadonlyMap<string, TaskMark> | undefined
}

function TaskList({ tasks, marks }: TaskListProps) {
  return (
    <ol className="task-list">
      {tasks.map((task) => (
        <li key={task.place}>
          <TaskBox task={task} mark={marks?.get(task.place)} isRun={marks !== undefined} />
          {(task.onSuccess.length > 0 || task.onFailure.length > 0) && (
            <div className="task-branches">
              <Branch name="workflows.onSuccess" tasks={task.onSuccess} marks={marks} />
              <Branch name="workflows.onFailure" tasks={task.onFailure} marks={marks} />
            </div>
          )}
        </li>
      ))}
    </ol>
  )
}

function Branch({ name, tasks, marks }: TaskListProps & { readonly name: MessageKey }) {
  const { t } = useTranslation()
  if (tasks.length === 0) return null
  return (
    <div className="task-branch">
      <Text size="xs" c="dimmed" fw={600}>
        {t(name)}
      </Text>
      <TaskList tasks={tasks} marks={marks} />
    </div>
  )
}

interface TaskBoxProps {
  readonly task: ConsoleTask
  readonly mark: TaskMark | undefined
  /** A task without a mark was not executed. */
  readonly isRun: boolean
}

function TaskBox({ task, mark, isRun }: TaskBoxProps) {
  const { t, number } = useTranslation()
  const { taskType, details, calls, place } = task
  const { label, name, target, className } = details
  const title = label ?? name ?? className?.split('.').at(-1)
  const look = mark && outcomeLooks[mark.outcome]
  return (
    <div className={`task-box${isRun ? ` task-${mark?.outcome ?? 'untouched'}` : ''}`} title={place}>
      <Text size="sm" fw={600}>
        {isolated(taskType)}
        {title !== undefined && calls.length === 0 && <Text span size="sm">{` ${isolated(title)}`}</Text>}
      </Text>
      {target !== undefined && (
        <Text size="xs" c="dimmed">
          {t('workflows.atTarget', { target })}
        </Text>
      )}
      {calls.map((workflow) => (
        <Link className="text-link" key={workflow} to="/console/workflows/$name" params={{ name: workflow }}>
          {isolated(workflow)}
        </Link>
      ))}
      {look !== undefined && <Status tone={look.tone} icon={look.icon} text={t(look.text)} />}
      {mark !== undefined && mark.attempts > 1 && (
        <Text size="xs" c="dimmed">{`${t('runs.attempt')}: ${number(mark.attempts)}`}</Text>
      )}
    </div>
  )
}
