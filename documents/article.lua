-- Makes the markdown of an article complete: the abstract, which readers of JATS, LaTeX and Word put among the metadata,
-- stands in the text as well, where it is searched and cited; captions of tables are paragraphs above them, for which
-- GitHub's markdown has no other place; links within the article are plain words.

local function led(blocks)
  local first = blocks[1]
  if first == nil or not (first.t == "Plain" or first.t == "Para") then
    return blocks
  end
  if not pandoc.utils.stringify(first):match("^%s*[Tt][Aa][Bb]") then
    first.content:insert(1, pandoc.Space())
    first.content:insert(1, pandoc.Str("Table:"))
  end
  blocks[1] = pandoc.Para(first.content)
  return blocks
end

function Table(table)
  local caption = table.caption.long
  if #caption == 0 then
    return nil
  end
  table.caption = {}
  return led(caption) .. { table }
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
local function without_headings(blocks)
  local made = pandoc.Blocks({})
  local title = nil
  for _, block in ipairs(blocks) do
    if block.t == "Header" then
      title = block.content
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

-- The name of an author without the address for correspondence, which stands in a footnote or right behind it.
local function without_address(author)
  if pandoc.utils.type(author) ~= "Inlines" then
    return author
  end
  local bare = author:walk({
    Note = function()
      return {}
    end,
  })
  local text = pandoc.utils.stringify(bare)
  local name = text:match("^(.-%w)[%s%*,]*Address for correspondence:") or text:match("^(.-%w)[%s%*,]*Correspondence:")
  return name and pandoc.Inlines(name) or bare
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
    doc.meta.author = doc.meta.author:map(without_address)
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
