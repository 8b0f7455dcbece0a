import { Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ConsoleTask } from '#features/portal/contract/console-workflows.ts'
import { pinnedDefinitionQuery } from '../../../api/console-runs.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import type { MessageKey } from '../../../app/messages.ts'
import { Answer } from '../../../components/answer.tsx'
import { Status } from '../../../components/status.tsx'
import { outcomeLooks, type TaskMark, type TaskMarks } from './task-marks.ts'
import './task-tree.css'

/** A run that follows a workflow. */
interface FollowingRun {
  readonly id: string
  /** What became of the tasks. */
  readonly marks: TaskMarks
  /** The hashes of the definitions that it follows, by workflow. */
  readonly definitions: Readonly<Record<string, string>>
  /** The labels that approvals have in the run, by the place of their task. */
  readonly labels: ReadonlyMap<string, string>
}

interface TaskTreeProps {
  readonly label: string
  readonly tasks: readonly ConsoleTask[]
  /** Marks each task with what became of it. */
  readonly run?: FollowingRun
}

/**
 * A workflow as a diagram: a list of tasks from top to bottom, each with the lists that follow from its result, and in
 * a run with the tasks of the workflow that it called.
 */
export function TaskTree({ label, tasks, run }: TaskTreeProps) {
  const { t } = useTranslation()
  if (tasks.length === 0) return <Text c="dimmed">{t('workflows.noTasks')}</Text>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keys have to reach it
    <section className="task-scroll" tabIndex={0} aria-label={label}>
      <TaskList tasks={tasks} run={run} />
    </section>
  )
}

interface TaskListProps {
  readonly tasks: readonly ConsoleTask[]
  readonly run: FollowingRun | undefined
}

function TaskList({ tasks, run }: TaskListProps) {
  return (
    <ol className="task-list">
      {tasks.map((task) => {
        const mark = run?.marks.get(task.place)
        return (
          <li key={task.place}>
            <TaskBox task={task} mark={mark} label={run?.labels.get(task.place)} isRun={run !== undefined} />
            {(task.onSuccess.length > 0 || task.onFailure.length > 0) && (
              <div className="task-branches">
                <Branch name="workflows.onSuccess" tasks={task.onSuccess} run={run} />
                <Branch name="workflows.onFailure" tasks={task.onFailure} run={run} />
              </div>
            )}
            {run !== undefined && mark?.called !== undefined && <CalledWorkflow {...run} {...mark.called} />}
          </li>
        )
      })}
    </ol>
  )
}

function Branch({ name, tasks, run }: TaskListProps & { readonly name: MessageKey }) {
  const { t } = useTranslation()
  if (tasks.length === 0) return null
  return (
    <div className="task-branch">
      <Text size="xs" c="dimmed" fw={600}>
        {t(name)}
      </Text>
      <TaskList tasks={tasks} run={run} />
    </div>
  )
}

/** The tasks of a workflow that a task of the run called. */
function CalledWorkflow({ workflow, ...run }: FollowingRun & { readonly workflow: string }) {
  const { t } = useTranslation()
  const definition = run.definitions[workflow]
  const query = useQuery({
    ...pinnedDefinitionQuery(workflow, definition ?? '', run.id),
    enabled: definition !== undefined,
  })
  const isMissing = definition === undefined || (query.error !== null && query.data === undefined)
  return (
    <div className="task-branches">
      <div className="task-branch">
        <Text size="xs" c="dimmed" fw={600}>
          {isolated(workflow)}
        </Text>
        {isMissing ? (
          <Text c="dimmed">{t('runs.noDiagram')}</Text>
        ) : (
          <Answer query={query} rows={1}>
            {({ tasks }) => <TaskList tasks={tasks} run={run} />}
          </Answer>
        )}
      </div>
    </div>
  )
}

interface TaskBoxProps {
  readonly task: ConsoleTask
  readonly mark: TaskMark | undefined
  /** Instead of that of the definition. */
  readonly label: string | undefined
  /** A task without a mark was not executed. */
  readonly isRun: boolean
}

function TaskBox({ task, mark, label, isRun }: TaskBoxProps) {
  const { t, number } = useTranslation()
  const { taskType, details, calls, place } = task
  const { label: template, name, target, className } = details
  const title = label ?? template ?? name ?? className?.split('.').at(-1)
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
