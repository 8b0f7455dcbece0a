import { Button, Group, Paper, Stack, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { definitionQuery } from '../../../api/console-runs.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { Answer } from '../../../components/answer.tsx'
import { Facts } from '../../../components/facts.tsx'
import { Icon } from '../../../components/icon.tsx'
import { ConsolePage } from '../console-page.tsx'
import { TaskTree } from './task-tree.tsx'

const route = getRouteApi('/console/workflows/$name')

/** The definition of one workflow. */
export function WorkflowPage() {
  const { t } = useTranslation()
  const { name } = route.useParams()
  const query = useQuery(definitionQuery(name))
  return (
    <ConsolePage
      title={name}
      actions={
        <Group gap="xs">
          <Button
            variant="default"
            renderRoot={(props) => <Link to="/console/workflows" {...props} />}
            leftSection={<Icon name="back" size={18} />}
          >
            {t('page.workflows')}
          </Button>
          <Button variant="default" renderRoot={(props) => <Link to="/console/runs" search={{ name }} {...props} />}>
            {t('page.runs')}
          </Button>
        </Group>
      }
    >
      <Answer query={query}>
        {({ label, description, org, inList, tasks }) => (
          <Stack gap="lg">
            <Paper withBorder p="md">
              <Facts
                facts={[
                  { name: t('workflows.label'), value: label },
                  ...(description === '' ? [] : [{ name: t('workflows.description'), value: description }]),
                  ...(org === undefined ? [] : [{ name: t('workflows.org'), value: org }]),
                  { name: t('workflows.inList'), value: t(inList ? 'console.yes' : 'console.no') },
                ]}
              />
            </Paper>
            <div>
              <Title order={2} size="h4" mb="sm">
                {t('workflows.tasks')}
              </Title>
              <TaskTree label={t('workflows.tasks')} tasks={tasks} />
            </div>
          </Stack>
        )}
      </Answer>
    </ConsolePage>
  )
}
