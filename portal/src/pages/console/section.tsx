import { Card, Stack, Title } from '@mantine/core'
import type { ReactNode } from 'react'

interface SectionProps {
  readonly title: string
  readonly children: ReactNode
}

/** A titled part of a page of the console. Tables in it are landmarks, so it is not. */
export function Section({ title, children }: SectionProps) {
  return (
    <Card withBorder p="md">
      <Stack gap="sm">
        <Title order={2} size="h4">
          {title}
        </Title>
        {children}
      </Stack>
    </Card>
  )
}
