-- Makes the markdown of an article complete: the abstract, which readers of JATS, LaTeX and Word put among the metadata,
-- stands in the text as well, where it is searched and cited; captions of tables are paragraphs above them, for which
-- GitHub's markdown has no other place, and each row of a table is one line below one header; links within the article are
-- plain words.

-- A caption as one paragraph that says it is a table's; JATS may have a heading and paragraphs in it.
local function led(blocks)
  for _, block in ipairs(blocks) do
    if not (block.t == "Plain" or block.t == "Para" or block.t == "Header") then
      return blocks
    elseif #blocks > 1 and block.t == "Header" and not pandoc.utils.stringify(block):match("[.:?!]%s*$") then
      block.content:insert(pandoc.Str("."))
    end
  end
  local words = pandoc.utils.blocks_to_inlines(blocks, { pandoc.Space() })
  if #words > 0 and not pandoc.utils.stringify(words):match("^%s*[Tt][Aa][Bb]") then
    words:insert(1, pandoc.Space())
    words:insert(1, pandoc.Str("Table:"))
  end
  return pandoc.Blocks(#words > 0 and { pandoc.Para(words) } or {})
end

-- What a cell holds, on one line; nil if it is more than text.
local function line_of(blocks)
  for _, block in ipairs(blocks) do
    if not (block.t == "Plain" or block.t == "Para") then
      return nil
    end
  end
  local line = pandoc.utils.blocks_to_inlines(blocks, { pandoc.Space() })
  local spaced = function()
    return pandoc.Space()
  end
  return line:walk({ LineBreak = spaced, SoftBreak = spaced })
end

-- The rows with a text for each column: a cell over several rows stands in each of them, one over several columns in the first,
-- or of a header in each. Nil if a cell holds more than text.
local function grid(rows, columns, is_header)
  local made, above = {}, {}
  for _, row in ipairs(rows) do
    local cells, place = {}, 1
    local function skip()
      while above[place] and above[place].left > 0 do
        cells[place], above[place].left = above[place].line, above[place].left - 1
        place = place + 1
      end
    end
    for _, cell in ipairs(row.cells) do
      skip()
      local line = line_of(cell.contents)
      if line == nil then
        return nil
      end
      local last = math.min(columns, place + cell.col_span - 1)
      for column = place, last do
        cells[column] = (is_header or column == place) and line or pandoc.Inlines({})
        above[column] = { line = cells[column], left = cell.row_span - 1 }
      end
      place = math.max(place, last + 1)
    end
    skip()
    for column = 1, columns do
      cells[column] = cells[column] or pandoc.Inlines({})
    end
    table.insert(made, cells)
  end
  return made
end

-- The lines of a header as one: of each column its different texts from above.
local function joined(lines, columns)
  local header = {}
  for column = 1, columns do
    local words, known = pandoc.Inlines({}), { [""] = true }
    for _, line in ipairs(lines) do
      local text = pandoc.utils.stringify(line[column]):match("^%s*(.-)%s*$")
      if not known[text] then
        words:extend(#words > 0 and { pandoc.Str(","), pandoc.Space() } or {})
        words:extend(line[column])
        known[text] = true
      end
    end
    header[column] = words
  end
  return header
end

-- A table whose cells span rows or columns has no other form in GitHub's markdown than HTML, in which a row has no header.
local function flat(given)
  local columns, rows, lines = #given.colspecs, {}, grid(given.head.rows, #given.colspecs, true)
  for _, body in ipairs(given.bodies) do
    local heads, own = grid(body.head, columns), grid(body.body, columns)
    if heads == nil or own == nil then
      return given
    end
    table.move(heads, 1, #heads, #rows + 1, rows)
    table.move(own, 1, #own, #rows + 1, rows)
  end
  local feet = grid(given.foot.rows, columns)
  if lines == nil or feet == nil then
    return given
  end
  table.move(feet, 1, #feet, #rows + 1, rows)
  local aligns, widths = {}, {}
  for column, spec in ipairs(given.colspecs) do
    aligns[column], widths[column] = spec[1], 0
  end
  local function plain(row)
    local cells = {}
    for column = 1, columns do
      cells[column] = { pandoc.Plain(row[column]) }
    end
    return cells
  end
  local bodies = {}
  for place, row in ipairs(rows) do
    bodies[place] = plain(row)
  end
  local header = #lines > 0 and plain(joined(lines, columns)) or {}
  return pandoc.utils.from_simple_table(pandoc.SimpleTable({}, aligns, widths, header, bodies))
end

function Table(given)
  local caption = given.caption.long
  given.caption = {}
  return led(caption) .. { flat(given) }
end

-- A JATS table has its caption in a division above it.
function Div(div)
  if not div.classes:includes("table-wrap") then
    return nil
  end
  return div:walk({
    Div = function(inner)
      if inner.classes:includes("caption") then
        return led(inner.content)
      end
    end,
  })
end

function Link(link)
  if link.target:match("^#") then
    return link.content
  end
  link.attr = pandoc.Attr()
  return link
end

-- Headings within an abstract ("Objective", "Results") begin their paragraphs, so that they are no sections of the paper.
-- A paragraph that is only the DOI of the abstract is no part of it.
local function without_headings(blocks)
  local made = pandoc.Blocks({})
  local title = nil
  for _, block in ipairs(blocks) do
    if block.t == "Header" then
      title = block.content
    elseif pandoc.utils.stringify(block):match("^[DOI]*:?%s*%S*10%.%d%d%d%d+/%S+$") then
      title = nil
    elseif title and (block.t == "Para" or block.t == "Plain") then
      if not pandoc.utils.stringify(title):match("[.:?!]$") then
        title:insert(pandoc.Str(":"))
      end
      made:insert(pandoc.Para({ pandoc.Strong(title), pandoc.Space(), table.unpack(block.content) }))
      title = nil
    else
      made:insert(block)
    end
  end
  return made
end

-- The name of an author without footnotes, which hold the address for correspondence.
local function without_notes(author)
  return pandoc.utils.type(author) ~= "Inlines" and author or author:walk({
    Note = function()
      return {}
    end,
  })
end

local function is_abstract_title(block)
  return pandoc.utils.stringify(block):lower():match("^%W*abstract%W*$") ~= nil
end

-- Whether the text opens with its abstract; a line "Abstract" before the first heading becomes a heading.
local function opens_with_abstract(blocks)
  for place, block in ipairs(blocks) do
    if block.t == "Para" and is_abstract_title(block) then
      blocks[place] = pandoc.Header(1, block.content)
      return true
    elseif block.t == "Header" then
      return is_abstract_title(block)
    end
  end
  return false
end

function Pandoc(doc)
  doc.meta.references = nil
  if pandoc.utils.type(doc.meta.author) == "List" then
    doc.meta.author = doc.meta.author:map(without_notes)
  end
  local opens = opens_with_abstract(doc.blocks)
  local abstract = doc.meta.abstract
  if abstract == nil then
    return doc
  end
  local blocks = pandoc.utils.type(abstract) == "Inlines" and pandoc.Blocks({ pandoc.Para(abstract) }) or abstract
  if pandoc.utils.type(blocks) ~= "Blocks" or #blocks == 0 then
    return doc
  end
  local plain = without_headings(blocks)
  doc.meta.abstract = pandoc.MetaBlocks(plain)
  if not opens then
    local body = doc.blocks
    if body[1] and body[1].t ~= "Header" then -- the introduction of many articles, which is no part of the abstract
      body:insert(1, pandoc.Header(1, "Introduction"))
    end
    doc.blocks = pandoc.Blocks({ pandoc.Header(1, "Abstract") }) .. plain .. body
  end
  return doc
end
